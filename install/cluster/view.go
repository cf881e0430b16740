package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"strait.io/strait/install/bundle"
)

// daemonConfig is the part of the daemon's configuration that this package reads.
type daemonConfig struct {
	Cluster string
	Gossip  struct{ Bind string }
	Mesh    struct{ Mode string }
}

// config reads the ConfigMap; found is false if strait is not installed.
func (c *Cluster) config(ctx context.Context) (d daemonConfig, found bool, err error) {
	m, err := get[corev1.ConfigMap](ctx, c, configMaps, c.Namespace, configName)
	if apierrors.IsNotFound(err) {
		return d, false, nil
	}
	if err != nil {
		return d, false, fmt.Errorf("context %s: read ConfigMap %s/%s: %w", c.Context, c.Namespace, configName, err)
	}
	if err := yaml.Unmarshal([]byte(m.Data["strait.yaml"]), &d); err != nil {
		return d, true, fmt.Errorf("context %s: read ConfigMap %s/%s: strait.yaml: %w", c.Context, c.Namespace, configName, err)
	}
	return d, true, nil
}

// ID returns the cluster's id: from the configuration, or else from its ClusterProperty. It is
// empty if neither has one.
func (c *Cluster) ID(ctx context.Context) (string, error) {
	d, _, err := c.config(ctx)
	if err != nil || d.Cluster != "" {
		return d.Cluster, err
	}
	return c.PropertyID(ctx)
}

// PropertyID returns the cluster's name in its ClusterProperty; empty if there is none.
func (c *Cluster) PropertyID(ctx context.Context) (string, error) {
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		p, err := c.objects.Resource(resource("about.k8s.io", version, "clusterproperties")).Get(ctx, "cluster.clusterset.k8s.io", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("context %s: read ClusterProperty cluster.clusterset.k8s.io: %w", c.Context, err)
		}
		id, _, _ := unstructured.NestedString(p.Object, "spec", "value")
		return id, nil
	}
	return "", nil
}

// View reads the cluster's id, UID, nodes and pod ranges, and the bundle that it holds.
func (c *Cluster) View(ctx context.Context) (bundle.View, error) {
	v := bundle.View{Context: c.Context}
	d, found, err := c.config(ctx)
	if err != nil {
		return v, err
	}
	if !found {
		return v, fmt.Errorf("context %s: strait is not installed; install it: strait install --context %s --cluster NAME", c.Context, c.Context)
	}
	if v.Cluster.ID, err = c.ID(ctx); err != nil {
		return v, err
	}
	if v.Cluster.ID == "" {
		return v, fmt.Errorf("context %s: the cluster has no id; give it one: strait upgrade --context %s --cluster NAME", c.Context, c.Context)
	}
	return v, c.view(ctx, d, &v)
}

func (c *Cluster) view(ctx context.Context, d daemonConfig, v *bundle.View) error {
	system, err := get[corev1.Namespace](ctx, c, namespaces, "", metav1.NamespaceSystem)
	if err != nil {
		return fmt.Errorf("context %s: read namespace kube-system: %w", c.Context, err)
	}
	v.Cluster.UID = string(system.UID)
	machines, err := list[corev1.Node](ctx, c, nodes, "", "")
	if err != nil {
		return fmt.Errorf("context %s: list nodes: %w", c.Context, err)
	}
	port := uint16(7946)
	if bind, err := netip.ParseAddrPort(d.Gossip.Bind); err == nil {
		port = bind.Port()
	}
	for _, n := range machines {
		v.Cluster.Nodes = append(v.Cluster.Nodes, addresses(&n, port)...)
		v.Cluster.PodCIDRs = append(v.Cluster.PodCIDRs, podCIDRs(&n)...)
	}
	v.Regions, v.Zones = labels(machines, corev1.LabelTopologyRegion), labels(machines, corev1.LabelTopologyZone)
	v.Have, err = c.ReadBundle(ctx)
	return err
}

// labels returns the values of a label of the nodes, sorted, with "" if a node does not have it.
func labels(nodes []corev1.Node, label string) (out []string) {
	for _, n := range nodes {
		out = append(out, n.Labels[label])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func addresses(n *corev1.Node, port uint16) (out []netip.AddrPort) {
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
			out = append(out, netip.AddrPortFrom(ip.Unmap(), port))
		}
	}
	return out
}

// podCIDRs returns the prefixes of a node's pods according to its Node object. The annotation
// overrides the spec, as it does for the daemons.
func podCIDRs(n *corev1.Node) (out []netip.Prefix) {
	list := n.Spec.PodCIDRs
	if len(list) == 0 && n.Spec.PodCIDR != "" {
		list = []string{n.Spec.PodCIDR}
	}
	if written := n.Annotations["strait.io/prefixes"]; written != "" {
		list = strings.Split(written, ",")
	}
	for _, s := range list {
		if p, err := netip.ParsePrefix(strings.TrimSpace(s)); err == nil {
			out = append(out, p.Masked())
		}
	}
	return out
}

// ReadBundle reads the Secret; nil if there is none. A Secret that was created by hand has a key
// but no bundle.
func (c *Cluster) ReadBundle(ctx context.Context) (*bundle.Bundle, error) {
	s, err := get[corev1.Secret](ctx, c, secrets, c.Namespace, SecretName)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("context %s: read Secret %s/%s: %w", c.Context, c.Namespace, SecretName, err)
	}
	key, err := oneKey(s.Data["gossip.key"])
	if err != nil {
		return nil, fmt.Errorf("context %s: Secret %s/%s: %w", c.Context, c.Namespace, SecretName, err)
	}
	text, ok := s.Data["bundle.json"]
	if !ok {
		if key == "" {
			return nil, nil
		}
		return &bundle.Bundle{Version: bundle.Version, GossipKey: key}, nil
	}
	b, err := bundle.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("context %s: Secret %s/%s: bundle.json: %w", c.Context, c.Namespace, SecretName, err)
	}
	if key != "" {
		b.GossipKey = key // the one that the daemons use
	}
	return &b, nil
}

// WriteBundle writes the Secret that the daemons mount in the cluster own, and returns the change.
func (c *Cluster) WriteBundle(ctx context.Context, b bundle.Bundle, own string) (Change, error) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{
			"name": SecretName, "namespace": c.Namespace,
			"labels": map[string]any{partOf: Daemon, "app.kubernetes.io/name": "strait"},
		},
		"data": map[string]any{
			"gossip.key":  []byte(string(b.GossipKey) + "\n"),
			"seeds":       b.Seeds(own),
			"bundle.json": b.Encode(),
		},
	}}
	// YAML encodes the bytes as base64.
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

// HashAnnotation is the annotation of the daemon's pods with the hash of the bundle that they were
// started with.
const HashAnnotation = "strait.io/clusterset-hash"

// RollDaemons restarts the daemons if the bundle holds another key than they were started with.
func (c *Cluster) RollDaemons(ctx context.Context, b bundle.Bundle) error {
	return c.annotate(ctx, "daemonsets", "DaemonSet", c.Namespace, Daemon, HashAnnotation, b.Hash())
}
