package replicate_test

import (
	"reflect"
	"strings"
	"testing"

	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/replicate"
)

// seed is the file of multicloud-integrations' README.
const seed = `clusters:
- name: onPremCluster1
  kubeconfig: /cfg/kubeconfig-onPremCluster1.yaml
  services:
  - namespace: stars
- name: eksCluster1
  kubeconfig: kubeconfig-eksCluster1.yaml
  services:
  - namespace: management-ui
  - namespace: client
    nameMatches: ["web-.*"]
`

func TestParseFile(t *testing.T) {
	f, err := replicate.ParseFile([]byte(seed), "/etc/set")
	if err != nil {
		t.Fatal(err)
	}
	if f.Clusters[0].Kubeconfig != "/cfg/kubeconfig-onPremCluster1.yaml" || f.Clusters[1].Kubeconfig != "/etc/set/kubeconfig-eksCluster1.yaml" {
		t.Errorf("kubeconfigs %+v", f.Clusters)
	}
	ps := f.Policies()
	if len(ps) != 2 || !reflect.DeepEqual(ps[1].Spec.Select, []policy.Term{{Namespaces: []string{"management-ui"}}, {Namespaces: []string{"client"}, Names: []string{"web-.*"}}}) ||
		ps[1].Spec.From[0] != "ekscluster1" || ps[1].Spec.To[0] != "onpremcluster1" {
		t.Errorf("policies %+v", ps)
	}
	for _, p := range ps {
		if len(p.Spec.Copy.Annotations) > 0 {
			t.Errorf("policy %s copies annotations that nobody named: %q", p.Name, p.Spec.Copy.Annotations)
		}
	}
	named, err := replicate.ParseFile([]byte(strings.Replace(seed, "  services:\n  - namespace: stars", "  annotations: [owner, team/*]\n  services:\n  - namespace: stars", 1)), "")
	if err != nil || !reflect.DeepEqual(named.Policies()[0].Spec.Copy.Annotations, []string{"owner", "team/*"}) {
		t.Errorf("%+v, %v", named, err)
	}
	text, err := policy.Encode(ps)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Decode(text); err != nil {
		t.Errorf("what --print prints is refused: %v\n%s", err, text)
	}
}

func TestParseFileRefuses(t *testing.T) {
	for change, says := range map[string]string{
		"name: eksCluster1|name: ONPREMCLUSTER1":             "clusters[1].name",
		"name: eksCluster1|name: eks/1":                      "clusters[1].name",
		"kubeconfig: kubeconfig-eksCluster1.yaml|context: x": "clusters[1].kubeconfig",
		"[\"web-.*\"]|[\"(\"]":                               "clusters[1].services[1].nameMatches[0]",
		"namespace: client|namespace: Client":                "clusters[1].services[1].namespace",
		"namespace: client|namespaces: [client]":             "namespaces",
		"name: eksCluster1|name: e\n  annotations: [\"[\"]":  "clusters[1].annotations[0]",
	} {
		old, text, _ := strings.Cut(change, "|")
		if _, err := replicate.ParseFile([]byte(strings.Replace(seed, old, text, 1)), ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: want %q: %v", text, says, err)
		}
	}
	if _, err := replicate.ParseFile([]byte("clusters: [{name: a, kubeconfig: b}]"), ""); err == nil || !strings.Contains(err.Error(), "two or more") {
		t.Errorf("one cluster: %v", err)
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(seed))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := replicate.ParseFile(text, "/")
		if err != nil {
			return
		}
		out, err := policy.Encode(file.Policies())
		if err == nil {
			_, err = policy.Decode(out)
		}
		if err != nil {
			t.Errorf("%q means policies that are refused: %v", text, err)
		}
	})
}
