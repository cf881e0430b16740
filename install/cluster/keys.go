package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"strait.io/strait/daemon/api"
)

// KeysSecret is the Secret with the cluster's root key and pins. The chart has the same name.
const KeysSecret = "strait-authority"

// Keys are what the Secret holds: the private root key, and pins. They are empty if it holds none.
type Keys struct{ Root, Pins []byte }

// ReadKeys reads the Secret; the zero value if there is none.
func (c *Cluster) ReadKeys(ctx context.Context) (Keys, error) {
	s, err := get[corev1.Secret](ctx, c, secrets, c.Namespace, KeysSecret)
	if apierrors.IsNotFound(err) {
		return Keys{}, nil
	}
	if err != nil {
		return Keys{}, fmt.Errorf("context %s: read Secret %s/%s: %w", c.Context, c.Namespace, KeysSecret, err)
	}
	return Keys{s.Data["root.key"], s.Data["pins.yaml"]}, nil
}

// WriteKeys writes the Secret.
func (c *Cluster) WriteKeys(ctx context.Context, k Keys) (Change, error) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{
			"name": KeysSecret, "namespace": c.Namespace,
			"labels": map[string]any{partOf: Daemon, "app.kubernetes.io/name": "strait"},
		},
		"data": map[string]any{"root.key": k.Root, "pins.yaml": k.Pins},
	}}
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		return Change{}, err
	}
	done, err := c.Apply(ctx, [][]byte{text}, false)
	if err != nil {
		return Change{}, err
	}
	return done[0], nil
}

// nudgeAnnotation is changed to make kubelets look at a pod. They refresh its volumes then, and not
// only after a minute or two.
const nudgeAnnotation = "strait.io/nudged"

// Nudge makes the kubelets pass changed Secrets on to the daemons now.
func (c *Cluster) Nudge(ctx context.Context) error {
	found, err := list[corev1.Pod](ctx, c, pods, c.Namespace, daemonPods)
	if err != nil {
		return fmt.Errorf("context %s: list the daemon's pods: %w", c.Context, err)
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{nudgeAnnotation: time.Now().UTC().Format(time.RFC3339Nano)}}})
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range found {
		_, err := c.objects.Resource(pods).Namespace(c.Namespace).Patch(ctx, p.Name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: Manager})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("context %s: annotate pod %s: %w", c.Context, p.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Pinned returns which clusters each ready daemon has pinned, by node.
func (c *Cluster) Pinned(ctx context.Context) (map[string][]string, error) {
	lists, err := c.Members(ctx)
	out := map[string][]string{}
	for node, answer := range lists {
		out[node] = []string{}
		for _, m := range answer.Items {
			if m.Node == "" && m.Pinned {
				out[node] = append(out[node], m.Cluster+" "+strings.Join(m.Keys, " "))
			}
		}
	}
	return out, err
}

// Members returns the list of members of each ready daemon, by node.
func (c *Cluster) Members(ctx context.Context) (map[string]api.MemberList, error) {
	found, err := list[corev1.Pod](ctx, c, pods, c.Namespace, daemonPods)
	if err != nil {
		return nil, fmt.Errorf("context %s: list the daemon's pods: %w", c.Context, err)
	}
	out := map[string]api.MemberList{}
	var errs []error
	for _, p := range found {
		if notReady(&p) != "" {
			continue
		}
		text, err := c.exec(ctx, p.Name, "/strait", "members", "-o", "json")
		var answer api.MemberList
		if jsonErr := json.Unmarshal(text, &answer); jsonErr != nil {
			errs = append(errs, fmt.Errorf("context %s: ask the daemon on %s: %w", c.Context, p.Spec.NodeName, errors.Join(err, jsonErr)))
			continue
		}
		out[p.Spec.NodeName] = answer
	}
	return out, errors.Join(errs...)
}

// rootAnnotation is the annotation of the daemon's pods with the root that they were restarted for.
const rootAnnotation = "strait.io/root"

// RollForRoot restarts the daemons, which read their root key when they start.
func (c *Cluster) RollForRoot(ctx context.Context, fingerprint string) error {
	return c.annotate(ctx, "daemonsets", "DaemonSet", c.Namespace, Daemon, rootAnnotation, fingerprint)
}
