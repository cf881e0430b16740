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

	"strait.io/strait/clustermesh/written"
)

// TestWritten: what the chart lets the leader write is what package written lists, and nothing else. So
// nothing is written that strait uninstall does not know.
func TestWritten(t *testing.T) {
	for _, mistake := range mistakes(written.Rows, leaderRules(t)) {
		t.Error(mistake)
	}
}

// TestWrittenIsWhole: a row without a rule is found, and a rule without a row.
func TestWrittenIsWhole(t *testing.T) {
	rules := leaderRules(t)
	widget := written.Row{
		Kind: "Widget", Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"},
		By: written.Mirrors, Labels: "app.kubernetes.io/managed-by=strait", End: written.Deleted,
	}
	rule := func(resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{resource}, Verbs: verbs}
	}
	with := append(slices.Clone(written.Rows), widget)
	noLabels := append(slices.Clone(written.Rows), widget)
	noLabels[len(written.Rows)].Labels = ""
	for what, c := range map[string]struct {
		rows []written.Row
		rule rbacv1.PolicyRule
		want string
	}{
		"a row and its rule":       {with, rule("widgets", "create", "delete"), ""},
		"a row without a rule":     {with, rule("widgets", "list"), "widgets.example.com has a row"},
		"a rule without a row":     {written.Rows, rule("widgets", "patch"), "widgets.example.com has no row"},
		"a status without a row":   {written.Rows, rule("widgets/status", "patch"), "widgets.example.com has no row"},
		"a rule to read":           {written.Rows, rule("widgets", "get", "list", "watch"), ""},
		"a row that lacks a label": {noLabels, rule("widgets", "create"), "without labels"},
	} {
		got := mistakes(c.rows, append(slices.Clone(rules), c.rule))
		if len(got) > 1 || (len(got) == 1) != (c.want != "") || !strings.Contains(fmt.Sprint(got), c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// mistakes compares rows with what rules let the leader write.
func mistakes(rows []written.Row, rules []rbacv1.PolicyRule) (out []string) {
	listed, may := map[string]bool{}, map[string]bool{}
	for _, r := range rows {
		if err := r.Check(); err != nil {
			out = append(out, err.Error())
		}
		listed[r.Resource.GroupResource().String()] = true
	}
	writes := []string{"create", "update", "patch", "delete", "deletecollection", "*"}
	for _, r := range rules {
		if !slices.ContainsFunc(r.Verbs, func(v string) bool { return slices.Contains(writes, v) }) {
			continue
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				plural, _, _ := strings.Cut(resource, "/")
				may[schema.GroupResource{Group: group, Resource: plural}.String()] = true
			}
		}
	}
	for _, r := range slices.Sorted(maps.Keys(may)) {
		if !listed[r] {
			out = append(out, r+" has no row in package written, so strait uninstall would leave it behind")
		}
	}
	for _, r := range slices.Sorted(maps.Keys(listed)) {
		if !may[r] {
			out = append(out, r+" has a row in package written, and the chart's roles do not let the leader write it")
		}
	}
	return out
}

// leaderRules returns the rules of the leader's account.
func leaderRules(t *testing.T) (out []rbacv1.PolicyRule) {
	t.Helper()
	objects := render(t, "{}")
	for _, id := range []string{"ClusterRole/strait-leader", "Role/strait-leader"} {
		text, err := yaml.Marshal(objects[id])
		var role rbacv1.ClusterRole // a Role has the same fields
		if err == nil {
			err = yaml.UnmarshalStrict(text, &role)
		}
		if err != nil || len(role.Rules) == 0 {
			t.Fatalf("%s: %v, %d rules", id, err, len(role.Rules))
		}
		out = append(out, role.Rules...)
	}
	return out
}
