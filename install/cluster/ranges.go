package cluster

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Network is the configuration of a cluster's network in its objects, as package trust takes it.
type Network struct {
	Calico                      []string
	Cilium                      map[string]string
	Flannel, Kubeadm, KubeProxy string
}

// ReadNetwork reads these objects. What does not exist, or may not be read, is left out.
func (c *Cluster) ReadNetwork(ctx context.Context) (n Network, err error) {
	for _, x := range []struct {
		namespace, name string
		take            func(map[string]string)
	}{
		{metav1.NamespaceSystem, "cilium-config", func(d map[string]string) { n.Cilium = d }},
		{"kube-flannel", "kube-flannel-cfg", func(d map[string]string) { n.Flannel = d["net-conf.json"] }},
		{metav1.NamespaceSystem, "kubeadm-config", func(d map[string]string) { n.Kubeadm = d["ClusterConfiguration"] }},
		{metav1.NamespaceSystem, "kube-proxy", func(d map[string]string) { n.KubeProxy = d["config.conf"] }},
	} {
		m, err := get[corev1.ConfigMap](ctx, c, configMaps, x.namespace, x.name)
		switch {
		case err == nil:
			x.take(m.Data)
		case !unsaid(err):
			return n, fmt.Errorf("context %s: read ConfigMap %s/%s: %w", c.Context, x.namespace, x.name, err)
		}
	}
	pools, err := c.objects.Resource(schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ippools"}).List(ctx, metav1.ListOptions{})
	switch {
	case unsaid(err):
		return n, nil
	case err != nil:
		return n, fmt.Errorf("context %s: list Calico's IPPools: %w", c.Context, err)
	}
	for _, p := range pools.Items {
		cidr, _, _ := unstructured.NestedString(p.Object, "spec", "cidr")
		if disabled, _, _ := unstructured.NestedBool(p.Object, "spec", "disabled"); !disabled {
			n.Calico = append(n.Calico, cidr)
		}
	}
	return n, nil
}

// podsPerPage is how many pods the API server is asked for at once.
const podsPerPage = 500

// PodAddrs returns the addresses of the cluster's pods, without those on the host's network. If pods may
// not be read, it returns none.
func (c *Cluster) PodAddrs(ctx context.Context) (out []netip.Addr, err error) {
	more := metav1.ListOptions{Limit: podsPerPage}
	for {
		page, err := c.objects.Resource(pods).List(ctx, more)
		switch {
		case unsaid(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("context %s: list pods: %w", c.Context, err)
		}
		for _, p := range page.Items {
			if onHost, _, _ := unstructured.NestedBool(p.Object, "spec", "hostNetwork"); onHost {
				continue
			}
			ips, _, _ := unstructured.NestedSlice(p.Object, "status", "podIPs")
			for _, x := range ips {
				m, _ := x.(map[string]any)
				text, _ := m["ip"].(string)
				if a, err := netip.ParseAddr(text); err == nil {
					out = append(out, a.Unmap())
				}
			}
		}
		if more.Continue = page.GetContinue(); more.Continue == "" {
			return out, nil
		}
	}
}

// unsaid reports whether an object does not exist or may not be read.
func unsaid(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) }
