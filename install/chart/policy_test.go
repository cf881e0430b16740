package chart_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/install/chart"
)

// barredBy renders the policy for one pattern and returns the regular expressions that it bars by: RE2, as Go's.
func barredBy(t *testing.T, pattern string) ([]*regexp.Regexp, error) {
	t.Helper()
	docs, err := chart.Render(chart.Options{Values: chart.Values{"admissionPolicy": true, "barredNamespaces": []any{pattern}}})
	if err != nil {
		return nil, err
	}
	variables := dig(objects(t, docs)["ValidatingAdmissionPolicy/strait-barred-namespaces"], "spec", "variables").([]any)
	var list []string
	if err := json.Unmarshal([]byte(dig(variables[0], "expression").(string)), &list); err != nil {
		t.Fatal(err)
	}
	var out []*regexp.Regexp
	for _, e := range list {
		out = append(out, regexp.MustCompile(e))
	}
	return out, nil
}

// TestBarredPatterns: what the policy refuses is what the daemon would not export.
func TestBarredPatterns(t *testing.T) {
	names := []string{"a", "ab", "abc", "b", "bcd", "team-a", "team-b", "team-b-1", "team-d", "team", "xteam-a", "x1y", "default", "kube-system", "kube-public", "kube-system-2"}
	for _, pattern := range []string{"a", "a*", "*a", "*", "a?", "??", "team-*", "team-[a-c]", "team-[^a-c]", "[^a]*", "a[bc]*",
		"[ab]c*", "[a-cx0-9]*", "[^a-cx]?*", "x.y", "*-*-[0-9]", "te+am*", "{a,b}", "(a|b)", "a$", "^a", "a|b"} {
		policy, err := barredBy(t, pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		daemon := clustermesh.Barred{pattern}
		if err := daemon.Check(); err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			refused := false
			for _, e := range policy {
				refused = refused || e.MatchString(n)
			}
			if why := daemon.Why(clustermesh.ServiceName{Namespace: n, Name: "serve"}); refused != (why != "") {
				t.Errorf("%s: namespace %s: the policy refuses it: %v; the daemon bars it: %q", pattern, n, refused, why)
			}
		}
	}
	for _, pattern := range []string{`team\-a`, "[[:alpha:]]", "[a", "a]", "[]a]", "[a-]", "[?-z]", "[a^]", ""} {
		if _, err := barredBy(t, pattern); err == nil || !strings.Contains(err.Error(), "barredNamespaces") {
			t.Errorf("%q: %v; want it refused", pattern, err)
		}
	}
}
