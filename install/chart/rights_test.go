package chart_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"strait.io/strait/clustermesh/object"
)

// TestRights: the daemon's account may list and watch every kind that strait reads, and nothing
// else. The leader's may do what is written here besides. That it suffices is tested where it is
// used: TestListAndWatchSuffice of clustermesh/kube, TestLeastPrivilegeSuffices of its writer.
func TestRights(t *testing.T) {
	leader := []rbacv1.PolicyRule{
		rule("namespaces", "create"),
		rule("services", "get", "create", "update", "patch", "delete"),
		rule("endpointslices.discovery.k8s.io", "create", "update", "patch", "delete"),
		rule("endpointslices/restricted.discovery.k8s.io", "create"),
		rule("serviceexports.multicluster.x-k8s.io", "get"),
		rule("serviceexports/status.multicluster.x-k8s.io", "patch"),
		rule("serviceimports.multicluster.x-k8s.io", "create", "patch", "delete"),
		rule("serviceimports/status.multicluster.x-k8s.io", "patch"),
		rule("serviceexports.net.gke.io", "get"),
		rule("serviceexports.multicluster.k8s.io", "get"),
		rule("serviceexports/status.multicluster.k8s.io", "patch"),
		rule("serviceimports.multicluster.k8s.io", "get", "patch"),
		rule("serviceimports/status.multicluster.k8s.io", "patch"),
		rule("serviceimports.net.gke.io", "list", "watch", "create", "patch", "delete"),
		rule("serviceimports/status.net.gke.io", "patch"),
		rule("servicepolicies/status.strait.io", "patch"),
		rule("ingresses.networking.k8s.io", "get", "list", "watch", "create", "update", "delete"),
		rule("multiclusterservices/status.networking.gke.io", "patch"),
		rule("multiclusteringresses/status.networking.gke.io", "patch"),
		rule("events.events.k8s.io", "create"),
	}
	var daemon []rbacv1.PolicyRule
	for _, k := range object.Kinds {
		daemon = append(daemon, rule(k.Resource, "list", "watch"))
	}
	lease := rule("leases.coordination.k8s.io", "get", "update")
	lease.ResourceNames = []string{"strait-leader"}
	signer := append(slices.Clone(leader), rule("tokenreviews.authentication.k8s.io", "create"))
	leases := []rbacv1.PolicyRule{rule("leases.coordination.k8s.io", "create"), lease}
	told := rule("configmaps", "patch")
	told.ResourceNames = []string{"strait-this-cluster"}
	makes := append(slices.Clone(leases), rule("secrets", "create"), rule("configmaps", "create"), told)
	for _, x := range []struct {
		values       string
		leader, role []rbacv1.PolicyRule
	}{
		{"{}", signer, makes}, {"authority: {mode: 'off'}", leader, leases}, {"authority: {mode: pinned}", signer, leases},
		{"ownWritesPolicy: false", signer, leases}, // nothing would limit create to strait's own
	} {
		all := render(t, x.values)
		rightsAre(t, all, map[string][]rbacv1.PolicyRule{
			"ClusterRole/strait": daemon, "ClusterRole/strait-leader": x.leader, "Role/strait-leader": x.role,
		})
		if limited := all["ValidatingAdmissionPolicy/strait-own-keys"] != nil; limited != (len(x.role) == len(makes)) {
			t.Errorf("%s: what may make Secrets is limited: %v", x.values, limited)
		}
	}
	for id, o := range render(t, "{}") {
		if role, is := o["roleRef"].(map[string]any); is && role["name"] == "strait-leader" {
			if got := fmt.Sprint(o["subjects"]); strings.Count(got, "name:") != 1 || !strings.Contains(got, "name:strait-leader ") {
				t.Errorf("%s is bound to %s", id, got)
			}
		}
	}
}

// rightsAre compares the rules of roles.
func rightsAre(t *testing.T, objects map[string]map[string]any, roles map[string][]rbacv1.PolicyRule) {
	t.Helper()
	for id, rules := range roles {
		text, err := yaml.Marshal(objects[id])
		var role rbacv1.ClusterRole // a Role has the same fields
		if err == nil {
			err = yaml.UnmarshalStrict(text, &role)
		}
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		got, want := rights(role.Rules), rights(rules)
		all := maps.Clone(got)
		maps.Copy(all, want)
		for _, k := range slices.Sorted(maps.Keys(all)) {
			if got[k] != want[k] {
				t.Errorf("%s: %s: may %q, want %q", id, k, got[k], want[k])
			}
		}
	}
}

// rule allows verbs on a resource.
func rule(resource string, verbs ...string) rbacv1.PolicyRule {
	r := schema.ParseGroupResource(resource)
	return rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: verbs}
}

// rights are the sorted verbs by resource and group, and by the object's name where a rule is for
// one.
func rights(rules []rbacv1.PolicyRule) map[string]string {
	out := map[string]string{}
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				k := strings.TrimSpace(strings.TrimSuffix(resource+"."+group, ".") + " " + strings.Join(r.ResourceNames, " "))
				out[k] = strings.Join(slices.Sorted(slices.Values(append(strings.Fields(out[k]), r.Verbs...))), " ")
			}
		}
	}
	return out
}

// TestKindsAreDefined: the chart brings the CustomResourceDefinitions of the kinds that strait
// cannot do without, in the versions that it reads best.
func TestKindsAreDefined(t *testing.T) {
	objects := render(t, "{installCRDs: true}")
	for _, k := range object.Kinds {
		crd, found := objects["CustomResourceDefinition/"+k.Resource]
		switch {
		case !k.Custom || !found && k.Need == object.Optional:
			continue
		case !found:
			t.Errorf("strait reads %s: add its CustomResourceDefinition to the chart's files", k.Resource)
			continue
		}
		scope := "Namespaced"
		if k.ClusterScoped {
			scope = "Cluster"
		}
		if kind := dig(crd, "spec", "names", "kind"); kind != k.Name || dig(crd, "spec", "scope") != scope {
			t.Errorf("%s defines %v, %v: the row of clustermesh/object says %s, %s", k.Resource, kind, dig(crd, "spec", "scope"), k.Name, scope)
		}
		if versions := dig(crd, "spec", "versions").([]any); !slices.ContainsFunc(versions, func(v any) bool {
			return dig(v, "name") == k.Versions[0].Name && dig(v, "served") == true
		}) {
			t.Errorf("%s does not serve %s, which strait reads", k.Resource, k.Versions[0].Name)
		}
	}
}

// TestUserRoles: people with Kubernetes' role view see what strait exports, imports and is
// configured with, and change nothing; those with edit also write exports.
func TestUserRoles(t *testing.T) {
	all := render(t, "{}")
	for name, want := range map[string]struct{ label, rights string }{
		"strait-view": {"rbac.authorization.k8s.io/aggregate-to-view", "serviceexports,serviceimports get,list,watch; servicepolicies get,list,watch; clusterproperties get,list,watch"},
		"strait-edit": {"rbac.authorization.k8s.io/aggregate-to-edit", "serviceexports get,list,watch,create,update,patch,delete,deletecollection"},
	} {
		role := decode[rbacv1.ClusterRole](t, all, "ClusterRole/"+name)
		var rights []string
		for _, r := range role.Rules {
			rights = append(rights, strings.Join(r.Resources, ",")+" "+strings.Join(r.Verbs, ","))
		}
		if got := strings.Join(rights, "; "); got != want.rights || role.Labels[want.label] != "true" {
			t.Errorf("%s: %s, labels %v", name, got, role.Labels)
		}
	}
}
