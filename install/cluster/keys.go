package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"strait.io/strait/clustermesh/written"
	"strait.io/strait/daemon/api"
)

// KeysSecret is the Secret with the cluster's root key, which only the pods of strait-leader mount, and
// PinsConfigMap has the pins, which are no secret. The chart has the same names.
const (
	KeysSecret    = written.KeysSecret
	PinsConfigMap = written.PinsConfigMap
)

// trustLevelConfigMap restricts trust to the pins. The chart and the daemons have the same name.
const trustLevelConfigMap = written.TrustLevelConfigMap

const (
	rootEntry = "root.key"
	// nextEntry has the key that replaces the root, while it does. The chart mounts the root alone.
	nextEntry = "root.key.next"
	pinsEntry = "pins.yaml"
)

// Keys are the private root key, the one that replaces it, and pins. They are empty if there are
// none.
type Keys struct{ Root, Next, Pins []byte }

// ReadKeys reads the Secret and the ConfigMap. Versions before this one kept the pins in the Secret.
func (c *Cluster) ReadKeys(ctx context.Context) (Keys, error) {
	s, err := get[corev1.Secret](ctx, c, secrets, c.Namespace, KeysSecret)
	if ignoreNotFound(err) != nil {
		return Keys{}, fmt.Errorf("context %s: read Secret %s/%s: %w", c.Context, c.Namespace, KeysSecret, err)
	}
	k := Keys{}
	if err == nil {
		k = Keys{s.Data[rootEntry], s.Data[nextEntry], s.Data[pinsEntry]}
	}
	m, err := get[corev1.ConfigMap](ctx, c, configMaps, c.Namespace, PinsConfigMap)
	if ignoreNotFound(err) != nil {
		return Keys{}, fmt.Errorf("context %s: read ConfigMap %s/%s: %w", c.Context, c.Namespace, PinsConfigMap, err)
	}
	if err == nil {
		k.Pins = []byte(m.Data[pinsEntry])
	}
	return k, nil
}

// WriteKeys writes the ConfigMap and the Secret, in this order: what a root signs counts where it is
// pinned. Pins that the Secret had are removed from it.
func (c *Cluster) WriteKeys(ctx context.Context, k Keys) ([]Change, error) {
	data := map[string]any{rootEntry: k.Root}
	if len(k.Next) > 0 {
		data[nextEntry] = k.Next
	}
	secret := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{
			"name": KeysSecret, "namespace": c.Namespace,
			"labels": map[string]any{partOf: Daemon, "app.kubernetes.io/name": "strait"},
		},
		"data": data,
	}
	text, err := yaml.Marshal(secret)
	if err != nil {
		return nil, err
	}
	pins, err := c.pinsObject(k.Pins)
	if err != nil {
		return nil, err
	}
	return c.Apply(ctx, [][]byte{pins, text}, false)
}

// pinsObject has no label of what the chart renders: an upgrade would remove it.
func (c *Cluster) pinsObject(pins []byte) ([]byte, error) {
	return yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": PinsConfigMap, "namespace": c.Namespace, "labels": map[string]any{"app.kubernetes.io/name": "strait"}},
		"data":     map[string]any{pinsEntry: string(pins)},
	})
}

// TrustPinned has only the pins count from the beginning, in a cluster whose keys were just made.
func (c *Cluster) TrustPinned(ctx context.Context) ([]Change, error) {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": trustLevelConfigMap, "namespace": c.Namespace, "labels": map[string]any{"app.kubernetes.io/name": "strait"}},
		"data":     map[string]any{"believe": "pinned"},
	})
	if err != nil {
		return nil, err
	}
	return c.Apply(ctx, [][]byte{text}, false)
}

// TrustPinsLater takes the word away that only the pins count.
func (c *Cluster) TrustPinsLater(ctx context.Context) error {
	err := c.objects.Resource(configMaps).Namespace(c.Namespace).Delete(ctx, trustLevelConfigMap, metav1.DeleteOptions{})
	if ignoreNotFound(err) != nil {
		return fmt.Errorf("context %s: delete ConfigMap %s/%s: %w", c.Context, c.Namespace, trustLevelConfigMap, err)
	}
	return nil
}

// MovePins copies pins from the Secret, where versions before this one kept them, to the ConfigMap that
// daemons mount. The pods of that version still mount the Secret, so its copy stays until WriteKeys.
func (c *Cluster) MovePins(ctx context.Context) ([]Change, error) {
	_, err := get[corev1.ConfigMap](ctx, c, configMaps, c.Namespace, PinsConfigMap)
	if !apierrors.IsNotFound(err) {
		return nil, err
	}
	k, err := c.ReadKeys(ctx)
	if err != nil || len(k.Pins) == 0 {
		return nil, err
	}
	text, err := c.pinsObject(k.Pins)
	if err != nil {
		return nil, err
	}
	return c.Apply(ctx, [][]byte{text}, false)
}

// nudgeAnnotation is changed to make kubelets look at a pod. They refresh its volumes then, and not
// only after a minute or two.
const nudgeAnnotation = "strait.io/nudged"

// nudgedPods selects the pods of daemons, which mount pins, and those of strait-leader, which mount the
// root.
const nudgedPods = "app.kubernetes.io/name=strait,app.kubernetes.io/component in (daemon,leader)"

// Nudge makes the kubelets pass changed Secrets and ConfigMaps on to the pods now.
func (c *Cluster) Nudge(ctx context.Context) error {
	found, err := list[corev1.Pod](ctx, c, pods, c.Namespace, nudgedPods)
	if err != nil {
		return fmt.Errorf("context %s: list strait's pods: %w", c.Context, err)
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

// Members returns the list of members of each ready daemon, by node.
func (c *Cluster) Members(ctx context.Context) (map[string]api.MemberList, error) {
	daemons, err := c.daemons(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]api.MemberList{}
	var errs []error
	for _, d := range daemons {
		answer, err := d.Members(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("context %s: ask the daemon on %s: %w", c.Context, d.node, err))
			continue
		}
		out[d.node] = *answer
	}
	return out, errors.Join(errs...)
}
