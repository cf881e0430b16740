package chart_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"strait.io/strait/clustermesh"
	"strait.io/strait/install/chart"
)

// bars is who bars namespaces where the chart is installed with some values.
type bars struct {
	policy []*regexp.Regexp // RE2, as Go's
	daemon clustermesh.Barred
}

// barredBy renders the chart, with the policy.
func barredBy(t testing.TB, values chart.Values) (b bars, err error) {
	t.Helper()
	docs, err := chart.Render(chart.Options{Values: chart.Merge(values, chart.Values{"admissionPolicy": true})})
	if err != nil {
		return b, err
	}
	all := objects(t, docs)
	variables := dig(all["ValidatingAdmissionPolicy/strait-barred-namespaces"], "spec", "variables").([]any)
	var list []string
	if err := json.Unmarshal([]byte(dig(variables[0], "expression").(string)), &list); err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		re, err := regexp.Compile(e)
		if err != nil {
			t.Fatalf("the policy would refuse every export: %v", err)
		}
		b.policy = append(b.policy, re)
	}
	var config struct {
		Source struct {
			Kubernetes struct{ BarredNamespaces clustermesh.Barred }
		}
	}
	if err := yaml.Unmarshal([]byte(dig(all["ConfigMap/strait"], "data", "strait.yaml").(string)), &config); err != nil {
		t.Fatal(err)
	}
	b.daemon = config.Source.Kubernetes.BarredNamespaces
	return b, nil
}

// compare names the namespace in which the policy and the daemon differ.
func (b bars) compare(namespaces []string) error {
	for _, n := range namespaces {
		refused := slices.ContainsFunc(b.policy, func(e *regexp.Regexp) bool { return e.MatchString(n) })
		if why := b.daemon.Why(clustermesh.ServiceName{Namespace: n, Name: "serve"}); refused != (why != "") {
			return fmt.Errorf("namespace %s: the policy %v refuses it: %v; the daemon bars it: %q", n, b.policy, refused, why)
		}
	}
	return nil
}

// pattern is the values that bar namespaces by one.
func pattern(p string) chart.Values { return chart.Values{"barredNamespaces": []any{p}} }

var someNamespaces = []string{"a", "ab", "abc", "b", "bcd", "team-a", "team-b", "team-b-1", "team-d", "team", "xteam-a", "x1y", "default", "kube-system", "kube-public", "kube-system-2"}

// TestBarredPatterns: what the policy refuses is what the daemon would not export.
func TestBarredPatterns(t *testing.T) {
	for _, p := range []string{"a", "a*", "*a", "*", "a?", "??", "team-*", "team-[a-c]", "team-[^a-c]", "[^a]*", "a[bc]*",
		"[ab]c*", "[a-cx0-9]*", "[^a-cx]?*", "x.y", "*-*-[0-9]", "te+am*", "{a,b}", "(a|b)", "a$", "^a", "a|b"} {
		b, err := barredBy(t, pattern(p))
		if err == nil {
			err = b.compare(someNamespaces)
		}
		if err != nil || b.daemon.Check() != nil {
			t.Errorf("%s: %v, %v", p, err, b.daemon.Check())
		}
	}
	for _, p := range []string{`team\-a`, "[[:alpha:]]", "[a", "a]", "[]a]", "[a-]", "[?-z]", "[a^]", "", "[c-a]", "team-[^a-cz-x]"} {
		if _, err := barredBy(t, pattern(p)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("barredNamespaces: %q", p)) {
			t.Errorf("%q: %v; want it refused", p, err)
		}
		if (clustermesh.Barred{p}).Check() == nil {
			t.Errorf("%q: the daemon takes it", p)
		}
	}
}

// TestAnyBarredPattern: a pattern is one to the chart and to the daemon, with the same meaning, or to neither.
func TestAnyBarredPattern(t *testing.T) {
	pieces := rapid.SampledFrom(strings.Split("a b c 0 9 - * ? [ ] ^ [a [^ c- -a a-c] [b-c] [^0-9] . $ | + ( ) { } \\", " "))
	names := rapid.SliceOfN(rapid.StringMatching("[a-c09][a-c09-]{0,4}"), 20, 20)
	rapid.Check(t, func(rt *rapid.T) {
		p := strings.Join(rapid.SliceOfN(pieces, 1, 6).Draw(rt, "pattern"), "")
		b, err := barredBy(t, pattern(p))
		if check := (clustermesh.Barred{p}).Check(); (err == nil) != (check == nil) {
			rt.Fatalf("%q: of the chart %v, of the daemon %v", p, err, check)
		}
		if err != nil {
			return
		}
		if err := b.compare(names.Draw(rt, "namespaces")); err != nil {
			rt.Fatalf("%q: %v", p, err)
		}
	})
}

// TestTypesOfMirrors: with strait's account, Services can have the types that the value exposeAs adds.
func TestTypesOfMirrors(t *testing.T) {
	for values, want := range map[string]string{
		"{}":                                   `["ClusterIP"]`,
		"exposeAs: null":                       `["ClusterIP"]`,
		"exposeAs: [LoadBalancer]":             `["ClusterIP","LoadBalancer"]`,
		"exposeAs: [NodePort, LoadBalancer]":   `["ClusterIP","NodePort","LoadBalancer"]`,
		"exposeAs: [ExternalName]":             `exposeAs: "ExternalName" is invalid`,
		"exposeAs: NodePort":                   "exposeAs: NodePort is not a list",
		"{exposeAs: [1], ownWritesPolicy: no}": `exposeAs: "1" is invalid`,
	} {
		var v chart.Values
		if err := yaml.UnmarshalStrict([]byte(values), &v); err != nil {
			t.Fatal(err)
		}
		docs, err := chart.Render(chart.Options{Values: v})
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", values, err, want)
			}
			continue
		}
		text := fmt.Sprint(objects(t, docs)["ValidatingAdmissionPolicy/strait-own-writes"])
		if !strings.Contains(text, "in "+want+" &&") {
			t.Errorf("%s: there is no %s in %s", values, want, text)
		}
	}
}

// TestConfigClusters: with strait's account, headless Services select pods for objects of the clusters whose
// configuration the daemon accepts, whichever value sets it, and of no other.
func TestConfigClusters(t *testing.T) {
	for values, want := range map[string]string{
		"{}":                          "",
		"acceptConfigFrom: []":        "",
		"acceptConfigFrom: [c1, '2']": `in ["c1","2"] ||`,
		"acceptConfigFrom: null":      "",
		"config: {source: null}":      "",
		"{acceptConfigFrom: [c1], config: {source: {kubernetes: {acceptConfigFrom: [c2]}}}}": `in ["c2"] ||`,
	} {
		var v chart.Values
		if err := yaml.UnmarshalStrict([]byte(values), &v); err != nil {
			t.Fatal(err)
		}
		docs, err := chart.Render(chart.Options{Values: v})
		if err != nil {
			t.Fatalf("%s: %v", values, err)
		}
		text := fmt.Sprint(objects(t, docs)["ValidatingAdmissionPolicy/strait-own-writes"])
		if _, from, any := strings.Cut(text, "strait.io/config-cluster"); any != (want != "") || any && !strings.Contains(from[:60], want) {
			t.Errorf("%s: want %q in %s", values, want, text)
		}
	}
}

// TestPolicyIsOfTheConfiguration: whichever value bars a namespace, the policy has what the daemon reads.
func TestPolicyIsOfTheConfiguration(t *testing.T) {
	for values, want := range map[string][]string{
		"{}":                               nil,
		"config: {source: null}":           nil,
		"{barredNamespaces: [team-*, ab]}": {"team-*", "ab"},
		"config: {source: {kubernetes: {barredNamespaces: [team-*, '[ab]c*']}}}":                 {"team-*", "[ab]c*"},
		"{barredNamespaces: ['x*'], config: {source: {kubernetes: {barredNamespaces: ['a?']}}}}": {"a?"},
		"{barredNamespaces: ['x*'], config: {source: {kubernetes: {barredNamespaces: null}}}}":   nil,
		"{barredNamespaces: ['x*'], config: {source: {kubernetes: {importSlices: headless}}}}":   {"x*"},
	} {
		var v chart.Values
		if err := yaml.UnmarshalStrict([]byte(values), &v); err != nil {
			t.Fatal(err)
		}
		b, err := barredBy(t, v)
		if err == nil {
			err = b.compare(someNamespaces)
		}
		if err != nil || !slices.Equal(b.daemon, want) {
			t.Errorf("%s: %v; the daemon bars %v, want %v", values, err, b.daemon, want)
		}
	}
	for _, values := range []string{"barredNamespaces: team-*", "barredNamespaces: [1]", "config: {source: {kubernetes: {barredNamespaces: team-*}}}"} {
		var v chart.Values
		if err := yaml.UnmarshalStrict([]byte(values), &v); err != nil {
			t.Fatal(err)
		}
		if _, err := chart.Render(chart.Options{Values: v}); err == nil || !strings.Contains(err.Error(), "barredNamespaces: ") {
			t.Errorf("%s: %v; want it refused", values, err)
		}
	}
}
