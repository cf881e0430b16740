package chart_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestRights: the daemon's account may do this and nothing else. That it suffices is tested where it is used:
// TestListAndWatchSuffice of clustermesh/kube, TestLeastPrivilegeSuffices of its writer.
func TestRights(t *testing.T) {
	objects := render(t, "{}")
	for id, want := range map[string]map[string]string{
		"ClusterRole/strait": {
			"nodes": "list watch", "namespaces": "list watch", "pods": "list watch",
			"services":                                    "get list watch create patch delete",
			"endpointslices.discovery.k8s.io":             "list watch create patch delete",
			"endpointslices/restricted.discovery.k8s.io":  "create",
			"serviceexports.multicluster.x-k8s.io":        "get list watch",
			"serviceexports/status.multicluster.x-k8s.io": "patch",
			"serviceimports.multicluster.x-k8s.io":        "list watch create patch delete",
			"serviceimports/status.multicluster.x-k8s.io": "patch",
			"serviceexports.net.gke.io":                   "get list watch",
			"serviceexports.multicluster.k8s.io":          "get list watch",
			"clusterproperties.about.k8s.io":              "list watch",
			"events.events.k8s.io":                        "create",
		},
		"Role/strait": {"leases.coordination.k8s.io": "create", "leases.coordination.k8s.io strait-leader": "get update"},
	} {
		text, err := yaml.Marshal(objects[id])
		var role rbacv1.ClusterRole // a Role has the same fields
		if err == nil {
			err = yaml.UnmarshalStrict(text, &role)
		}
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if got := rights(role.Rules); !maps.Equal(got, want) {
			for _, k := range slices.Sorted(maps.Keys(got)) {
				if got[k] != want[k] {
					t.Errorf("%s: %s: may %q, want %q", id, k, got[k], want[k])
				}
			}
			for _, k := range slices.Sorted(maps.Keys(want)) {
				if got[k] == "" {
					t.Errorf("%s: %s: may nothing, want %q", id, k, want[k])
				}
			}
		}
	}
}

// rights are the verbs by resource and group, and by the object's name where a rule is for one.
func rights(rules []rbacv1.PolicyRule) map[string]string {
	out := map[string]string{}
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				k := strings.TrimSpace(strings.TrimSuffix(resource+"."+group, ".") + " " + strings.Join(r.ResourceNames, " "))
				out[k] = strings.TrimSpace(out[k] + " " + strings.Join(r.Verbs, " "))
			}
		}
	}
	return out
}
