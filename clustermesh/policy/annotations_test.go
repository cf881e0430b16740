package policy_test

import (
	"maps"
	"slices"
	"testing"

	"strait.io/strait/clustermesh/policy"
)

// TestCopiedAnnotations: what controllers act on is copied by its exact key alone.
func TestCopiedAnnotations(t *testing.T) {
	const hostname, lb = "external-dns.alpha.kubernetes.io/hostname", "service.beta.kubernetes.io/aws-load-balancer-type"
	from := map[string]string{"owner": "a", "team/x": "b", hostname: "github.com", lb: "nlb", "metallb.io/ip-allocated-from-pool": "p", "cloud.k8s.io/x": "c", "strait.io/global": "true"}
	for what, c := range map[string]struct{ patterns, want []string }{
		"none":        {nil, nil},
		"named":       {[]string{"owner", hostname}, []string{hostname, "owner"}},
		"wildcards":   {[]string{"*", "*/*"}, []string{"owner", "team/x"}},
		"a prefix":    {[]string{"external-dns.alpha.kubernetes.io/*", "service.beta.kubernetes.io/?*", "metallb.io/*"}, nil},
		"a character": {[]string{"external-dns.alpha.kubernetes.io/hostnam[e]"}, nil},
		"both":        {[]string{"*/*", lb}, []string{lb, "team/x"}},
		"strait's":    {[]string{"strait.io/global"}, nil},
	} {
		if got := slices.Sorted(maps.Keys(policy.CopiedAnnotations(from, c.patterns))); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// TestCopiedOfDeployers: a mirror does not look like an object that a tool deployed, which the tool
// would delete because its source does not have it.
func TestCopiedOfDeployers(t *testing.T) {
	from := map[string]string{
		"team": "a", "helm.sh/chart": "cart-1.0.0", "argocd.argoproj.io/instance": "shop", "kapp.k14s.io/app": "1", "objectset.rio.cattle.io/hash": "0123",
		"kustomize.toolkit.fluxcd.io/name": "shop", "helm.toolkit.fluxcd.io/name": "shop", "fleet.cattle.io/bundle-id": "shop",
		"applyset.kubernetes.io/part-of": "applyset-x-v1", "addonmanager.kubernetes.io/mode": "Reconcile",
	}
	for what, c := range map[string]struct{ patterns, want []string }{
		"by default": {nil, []string{"helm.sh/chart", "team"}},
		"wildcards":  {[]string{"*", "*/*"}, []string{"helm.sh/chart", "team"}},
		"by name":    {[]string{"team", "argocd.argoproj.io/instance"}, []string{"team"}},
	} {
		if got := slices.Sorted(maps.Keys(policy.Copied(from, c.patterns, policy.Portable))); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
