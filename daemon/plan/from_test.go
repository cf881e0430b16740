package plan_test

import (
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
)

func TestFrom(t *testing.T) {
	s := clusterset()
	for _, cluster := range []string{"a", "b", "c"} {
		for _, node := range []string{"n1", "n2"} {
			edit(&s, cluster, node, func(c *clustermesh.Content) {
				c.Endpoints[0].Pod = map[string]string{"a": "near", "b": "both", "c": "both"}[cluster]
				if node == "n2" {
					c.Endpoints[0].Pod = map[string]string{"a": "twin", "b": "twin", "c": "only-c"}[cluster]
				}
			})
		}
	}
	ns := s.Records.Get(clustermesh.Origin{Cluster: "b", Node: "n1"}).Content.Endpoints[0].Service.Namespace
	addr := s.Records.Get(clustermesh.Origin{Cluster: "c", Node: "n2"}).Content.Endpoints[0].Addr
	beside := s.Records.Get(clustermesh.Origin{Cluster: "b", Node: "n2"}).Content.Node
	for text, want := range map[string]string{
		"":                           "a/n1",
		"n1":                         "a/n1",
		"n2":                         "a/n2",
		"b/n2":                       "b/n2",
		ns + "/only-c":               "c/n2",
		ns + "/twin":                 "a/n2", // of the own cluster first
		ns + "/near":                 "a/n1",
		"b/" + ns + "/both":          "b/n1",
		addr.String():                "c/n2",
		"::ffff:" + addr.String():    "c/n2",
		beside.Addresses[0].String(): "b/n2",
		beside.Prefixes[0].Addr().Next().Next().Next().String(): "b/n2",
		ns + "/both":        "write CLUSTER/NAMESPACE/POD",
		"a/" + ns + "/both": "no endpoint's pod is called",
		"n9":                "no node is called a/n9",
		"b/n9":              "no node is called b/n9",
		ns + "/nobody":      "no node is called",
		"192.0.2.250":       "no node has the address 192.0.2.250",
		"b/c/d/e":           "is neither a node nor a pod",
		"/":                 "no node is called",
	} {
		got, err := plan.From(s, plan.Self{Cluster: "a", Node: "n1"}, text)
		if err != nil {
			if !strings.Contains(want, " ") || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "; ") {
				t.Errorf("%q: %v, want %s, and what to do", text, err, want)
			}
			continue
		}
		if is := string(got.Cluster) + "/" + string(got.Node); is != want {
			t.Errorf("%q: %s, want %s", text, is, want)
		}
	}
}
