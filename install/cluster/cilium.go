package cluster

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cilium is what a cluster's objects have about Cilium, as package preflight takes it.
type Cilium struct {
	Config map[string]string
	Image  string
}

// ReadCilium reads these objects. What does not exist, or may not be read, is empty.
func (c *Cluster) ReadCilium(ctx context.Context) (out Cilium, err error) {
	config, err := get[corev1.ConfigMap](ctx, c, configMaps, metav1.NamespaceSystem, "cilium-config")
	switch {
	case unsaid(err):
		return out, nil
	case err != nil:
		return out, fmt.Errorf("context %s: read ConfigMap %s/cilium-config: %w", c.Context, metav1.NamespaceSystem, err)
	}
	out.Config = config.Data
	agent, err := get[appsv1.DaemonSet](ctx, c, daemonSets, metav1.NamespaceSystem, "cilium")
	switch {
	case err == nil:
		for _, x := range agent.Spec.Template.Spec.Containers {
			if x.Name == "cilium-agent" {
				out.Image = x.Image
			}
		}
	case !unsaid(err):
		return out, fmt.Errorf("context %s: read DaemonSet %s/cilium: %w", c.Context, metav1.NamespaceSystem, err)
	}
	return out, nil
}
