package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

const (
	// withdrawTime is how long the daemons may take to restart and hear the other clusters.
	withdrawTime = time.Minute
	// silentTime is how long they may take to hear a cluster that they did not hear before either. It is
	// down, or strait was removed from it.
	silentTime = 10 * time.Second
	// spreadTime lets the withdrawal spread among daemons that hear each other, which compare
	// digests once a second.
	spreadTime = 5 * time.Second
)

// configHash is the chart's annotation of the daemon's pods that changes with the configuration.
const configHash = "strait.io/config-hash"

// Withdraw makes the daemons withdraw everything that they announce. A daemon that only stops
// withdraws nothing, and the other clusters would go on dialling pods that no tunnel leads to. It
// returns the clusters that cannot have heard the withdrawal. Called again, it changes nothing and
// only asks the daemons. It calls report with its progress.
func (c *Cluster) Withdraw(ctx context.Context, report func(string)) (deaf []string, err error) {
	have, err := c.ReadBundle(ctx)
	if err != nil || have == nil {
		return nil, err
	}
	own, err := c.ID(ctx)
	if err != nil {
		return nil, err
	}
	deaf = slices.DeleteFunc(have.Members(), func(id string) bool { return id == own })
	ds, err := get[appsv1.DaemonSet](ctx, c, daemonSets, c.Namespace, Daemon)
	switch {
	case apierrors.IsNotFound(err) || len(deaf) == 0:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("context %s: read DaemonSet %s: %w", c.Context, Daemon, err)
	case ds.Status.DesiredNumberScheduled == 0 || ds.DeletionTimestamp != nil:
		return deaf, nil // no daemon runs that could withdraw anything
	}
	before, err := c.Ask(ctx, own)
	if err != nil {
		before = nil // a daemon that does not answer may hear what others do not
	}
	if err := c.barAll(ctx); err != nil {
		return nil, err
	}
	report("its Services are withdrawn from the clusterset")
	return c.heard(ctx, own, deaf, before)
}

// barAll bars every namespace and restarts all daemons at once: the kernels keep serving meanwhile.
func (c *Cluster) barAll(ctx context.Context) error {
	m, err := get[corev1.ConfigMap](ctx, c, configMaps, c.Namespace, configName)
	if err != nil {
		return fmt.Errorf("context %s: read ConfigMap %s/%s: %w", c.Context, c.Namespace, configName, err)
	}
	text, err := barred([]byte(m.Data["strait.yaml"]))
	if err != nil {
		return fmt.Errorf("context %s: ConfigMap %s/%s: strait.yaml: %w", c.Context, c.Namespace, configName, err)
	}
	sum := sha256.Sum256(text)
	all := map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": "100%", "maxSurge": 0}}
	pod := map[string]any{"metadata": map[string]any{"annotations": map[string]any{configHash: hex.EncodeToString(sum[:8])}}}
	err = errors.Join(
		c.merge(ctx, configMaps, configName, map[string]any{"data": map[string]any{"strait.yaml": string(text)}}),
		c.merge(ctx, daemonSets, Daemon, map[string]any{"spec": map[string]any{"updateStrategy": all, "template": pod}}))
	if err != nil {
		return fmt.Errorf("context %s: make the daemons withdraw what they announce: %w", c.Context, err)
	}
	return nil
}

// barred returns the daemon's configuration with every namespace barred.
func barred(config []byte) ([]byte, error) {
	var tree map[string]any
	if err := yaml.Unmarshal(config, &tree); err != nil {
		return nil, err
	}
	if tree == nil {
		return nil, errors.New("it is empty")
	}
	if err := unstructured.SetNestedStringSlice(tree, []string{"*"}, "source", "kubernetes", "barredNamespaces"); err != nil {
		return nil, err
	}
	return yaml.Marshal(tree)
}

func (c *Cluster) merge(ctx context.Context, kind schema.GroupVersionResource, name string, patch map[string]any) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = c.objects.Resource(kind).Namespace(c.Namespace).Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: Manager})
	return err
}

// heard waits until all daemons have the current template and together hear every other cluster,
// and then lets the withdrawal spread. It returns the clusters that no daemon heard in time. before is
// what the daemons answered when they were not restarted yet.
func (c *Cluster) heard(ctx context.Context, own string, others []string, before []Answer) (deaf []string, err error) {
	var restarted time.Time
	over := errors.New("time is over")
	wait, cancel := context.WithTimeoutCause(ctx, withdrawTime, over)
	defer cancel()
	err = poll(wait, waitEvery, func() (bool, error) {
		deaf = others
		ds, err := get[appsv1.DaemonSet](wait, c, daemonSets, c.Namespace, Daemon)
		if err != nil || !rolledOut(ds) {
			return false, err
		}
		if restarted.IsZero() {
			restarted = time.Now()
		}
		// A daemon that does not answer counts as hearing no one. The requests get ctx, and have a
		// timeout of their own: if wait cut them short, client-go would complain on stderr.
		answers, _ := c.Ask(ctx, own)
		deaf = slices.DeleteFunc(slices.Clone(others), func(id string) bool { return Hears(answers, id) })
		return enough(deaf, before, time.Since(restarted)), nil
	})
	if err != nil && !errors.Is(err, over) {
		return deaf, fmt.Errorf("context %s: make the daemons withdraw what they announce: %w", c.Context, err)
	}
	if len(deaf) == len(others) {
		return deaf, nil
	}
	select {
	case <-ctx.Done():
		return deaf, context.Cause(ctx)
	case <-time.After(spreadTime):
		return deaf, nil
	}
}

// enough reports whether there is nothing to wait for: every cluster is heard, or those that are not were
// not heard before the restart either, and had their time since then.
func enough(deaf []string, before []Answer, since time.Duration) bool {
	heardBefore := func(id string) bool { return Hears(before, id) }
	return len(deaf) == 0 || since >= silentTime && len(before) > 0 && !slices.ContainsFunc(deaf, heardBefore)
}

// Hears reports whether any of the daemons hears a node of the cluster.
func Hears(answers []Answer, cluster string) bool {
	for _, a := range answers {
		for _, n := range a.Nodes {
			if n.Cluster == cluster && n.IsHeard() {
				return true
			}
		}
	}
	return false
}
