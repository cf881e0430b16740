package policy_test

import (
	"reflect"
	"strings"
	"testing"

	"strait.io/strait/clustermesh/policy"
)

const good = `apiVersion: strait.io/v1alpha1
kind: ServicePolicy
metadata: {name: stars}
spec:
  from: [onprem]
  to: ["*"]
  select:
  - namespaces: [stars]
    names: ["front.*"]
    labels: {matchLabels: {mirror: "true"}}
  as: mirror
  name: "{name}"
  namespace: "{namespace}"
  createNamespace: false
  endpoints: pods
  copy: {labels: ["app", "team/*"], annotations: []}
  exposeAs: ClusterIP
`

func TestDecode(t *testing.T) {
	ps, err := policy.Decode([]byte(good + "---\n" + strings.Replace(good, "name: stars", "name: other", 1) + "---\n"))
	if err != nil || len(ps) != 2 {
		t.Fatalf("%d policies, %v", len(ps), err)
	}
	text, err := policy.Encode(ps)
	if err != nil {
		t.Fatal(err)
	}
	again, err := policy.Decode(text)
	if err != nil || len(again) != 2 || !reflect.DeepEqual(again[0].Spec.Select, ps[0].Spec.Select) {
		t.Errorf("again: %v, %v", again, err)
	}
}

// TestDecodeRefuses: each mistake is named with its field, all at once.
func TestDecodeRefuses(t *testing.T) {
	for change, words := range map[string][]string{
		"from: [onprem]|from: []":                                       {"spec.from"},
		"from: [onprem]|from: [On_Prem]":                                {"spec.from[0]", "On_Prem"},
		"to: [\"*\"]|to: [a/b]":                                         {"spec.to[0]"},
		"names: [\"front.*\"]|names: [\"(\"]":                           {"spec.select[0].names[0]"},
		"namespaces: [stars]|namespaces: [kube-system]":                 {"spec.select[0].namespaces[0]", "barred"},
		"matchLabels: {mirror: \"true\"}|matchLabels: {\"a b\": \"c\"}": {"spec.select[0].labels"},
		"as: mirror|as: copy":                                           {"spec.as", `"import", "mirror", "join"`},
		"as: mirror|as: import\n  namespace: other":                     {"already set"},
		"name: \"{name}\"|name: \"{nam}\"":                              {"spec.name", "{cluster}"},
		"name: \"{name}\"|name: \"{name}_x\"":                           {"spec.name"},
		"endpoints: pods|endpoints: nodes":                              {"spec.endpoints"},
		"exposeAs: ClusterIP|exposeAs: ExternalName":                    {"spec.exposeAs"},
		"labels: [\"app\", \"team/*\"]|labels: [\"[\"]":                 {"spec.copy.labels[0]"},
		"metadata: {name: stars}|metadata: {name: St_ars}":              {"metadata.name"},
		"apiVersion: strait.io/v1alpha1|apiVersion: v1":                 {"apiVersion"},
		"createNamespace: false|createNamespaces: true":                 {"createNamespaces"},
		"from: [onprem]\n  to: [\"*\"]|from: []\n  to: []":              {"spec.from", "spec.to"},
	} {
		old, text, _ := strings.Cut(change, "|")
		if !strings.Contains(good, old) {
			t.Fatalf("there is no %q", old)
		}
		_, err := policy.Decode([]byte(strings.Replace(good, old, text, 1)))
		for _, word := range words {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: want %q: %v", text, word, err)
			}
		}
	}
	for _, text := range []string{
		strings.Replace(good, "  - namespaces: [stars]\n    names: [\"front.*\"]\n    labels: {matchLabels: {mirror: \"true\"}}", "  - {}", 1), // a term without a condition
		strings.Replace(good, "as: mirror", "as: join", 1), // exposeAs goes with objects that are made
		strings.NewReplacer("as: mirror", "as: import", "namespace: \"{namespace}\"", "namespace: other").Replace(good),
		good + "---\n" + good, // two of one name
	} {
		if _, err := policy.Decode([]byte(text)); err == nil {
			t.Errorf("accepted:\n%s", text)
		}
	}
}

// TestRefusesWhatHasNoEffect: a field that another As has no use for is a mistake, and named.
func TestRefusesWhatHasNoEffect(t *testing.T) {
	pods := policy.Spec{From: []string{"*"}, To: []string{"*"}, Select: []policy.Term{{Names: []string{".*"}}}, Endpoints: policy.Pods}
	for _, as := range []policy.As{policy.Import, "", policy.Join, policy.Mirror} {
		for field, set := range map[string]func(*policy.Spec){
			"spec.name":            func(s *policy.Spec) { s.Name = "far-{name}" },
			"spec.namespace":       func(s *policy.Spec) { s.Namespace = "{namespace}-{cluster}" },
			"spec.createNamespace": func(s *policy.Spec) { s.CreateNamespace = true },
			"spec.endpoints":       func(s *policy.Spec) { s.Endpoints = policy.ClusterIP },
			"spec.exposeAs":        func(s *policy.Spec) { s.ExposeAs = "NodePort" },
			"spec.copy":            func(s *policy.Spec) { s.Copy.Annotations = []string{"team"} },
		} {
			p := policy.Policy{TypeMeta: policy.Type, Spec: pods}
			p.Name, p.Spec.As = "p", as
			set(&p.Spec)
			var fields []string
			for _, m := range policy.Validate(p) {
				fields = append(fields, m.Field)
			}
			imports := as == "" || as == policy.Import
			fits := as == policy.Mirror || imports && (field == "spec.copy" || field == "spec.createNamespace")
			if want := []string{field}; fits && len(fields) > 0 || !fits && !reflect.DeepEqual(fields, want) {
				t.Errorf("as %q with %s: mistakes at %q", as, field, fields)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("{}"))
	f.Add([]byte("---\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ps, err := policy.Decode(text)
		if err != nil {
			return
		}
		again, err := policy.Encode(ps)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policy.Decode(again); err != nil {
			t.Errorf("%q was accepted, but not as %q: %v", text, again, err)
		}
		for _, p := range ps {
			_ = policy.SelectorOf(p.Spec, true).Selects("shop", "cart", map[string]string{"app": "cart"})
		}
	})
}
