package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// MembersConfigMap has a file for each cluster that this one believes, if these come from a
// repository. The chart has the same name.
const MembersConfigMap = "strait-members"

// ListedMembers returns the names of its files, sorted; none if there is no such ConfigMap.
func (c *Cluster) ListedMembers(ctx context.Context) ([]string, error) {
	m, err := get[corev1.ConfigMap](ctx, c, configMaps, c.Namespace, MembersConfigMap)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("context %s: read ConfigMap %s/%s: %w", c.Context, c.Namespace, MembersConfigMap, err)
	}
	return slices.Sorted(maps.Keys(m.Data)), nil
}

// AppliedBy returns which tool keeps the daemon's DaemonSet as it is in a repository; empty if none
// is known to.
func (c *Cluster) AppliedBy(ctx context.Context) (string, error) {
	d, err := get[appsv1.DaemonSet](ctx, c, daemonSets, c.Namespace, Daemon)
	if err != nil {
		return "", ignoreNotFound(err)
	}
	return keeper(d.Labels, d.Annotations), nil
}

// keeper returns which tool marked an object as its own, and by which object of its own it does.
func keeper(labels, annotations map[string]string) string {
	for _, flux := range []struct{ prefix, kind string }{{"kustomize.toolkit.fluxcd.io/", "Kustomization"}, {"helm.toolkit.fluxcd.io/", "HelmRelease"}} {
		if name := labels[flux.prefix+"name"]; name != "" {
			return fmt.Sprintf("Flux (%s %s/%s)", flux.kind, labels[flux.prefix+"namespace"], name)
		}
	}
	if id := annotations["argocd.argoproj.io/tracking-id"]; id != "" {
		return "Argo CD (" + id + ")"
	}
	if labels["argocd.argoproj.io/instance"] != "" {
		return "Argo CD (" + labels["argocd.argoproj.io/instance"] + ")"
	}
	return ""
}
