package cluster

import "testing"

// TestKeeper: the marks are those of Flux' kustomize-controller and helm-controller, and of Argo CD
// with its three ways to track. What Helm marks, no program puts back.
func TestKeeper(t *testing.T) {
	type marks = map[string]string
	for want, c := range map[string]struct{ labels, annotations marks }{
		"":                                   {marks{"app.kubernetes.io/managed-by": "Helm"}, marks{"meta.helm.sh/release-name": "strait"}},
		"Flux (Kustomization flux-system/a)": {marks{"kustomize.toolkit.fluxcd.io/name": "a", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}, nil},
		"Flux (HelmRelease strait-system/b)": {marks{"helm.toolkit.fluxcd.io/name": "b", "helm.toolkit.fluxcd.io/namespace": "strait-system"}, nil},
		"Argo CD (c:apps/DaemonSet:strait-system/strait)": {nil, marks{"argocd.argoproj.io/tracking-id": "c:apps/DaemonSet:strait-system/strait"}},
		"Argo CD (d)": {marks{"argocd.argoproj.io/instance": "d"}, nil},
	} {
		if got := keeper(c.labels, c.annotations); got != want {
			t.Errorf("%v, %v: %q, want %q", c.labels, c.annotations, got, want)
		}
	}
}
