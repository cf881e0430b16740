package clustermesh_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
)

func port(name string, proto l4.Proto, n uint16) clustermesh.ServicePort {
	return clustermesh.ServicePort{Name: name, Proto: proto, Port: n}
}

func export(cluster string, created int64, ports ...clustermesh.ServicePort) clustermesh.ClusterExport {
	return clustermesh.ClusterExport{Cluster: clustermesh.ClusterName(cluster), Export: clustermesh.Export{
		Service: clustermesh.ServiceName{Namespace: "default", Name: "serve"},
		Type:    clustermesh.ClusterSetIP, Created: created, Ports: ports,
	}}
}

func TestMerge(t *testing.T) {
	http, dns := port("http", l4.TCP, 80), port("dns", l4.UDP, 53)
	headless := export("b", 2, http)
	headless.Type = clustermesh.Headless
	for _, tc := range []struct {
		name      string
		in        []clustermesh.ClusterExport
		ports     string
		exporters string
		problem   string // substring of the only problem, or "" for none
	}{
		{"one", []clustermesh.ClusterExport{export("a", 1, http)}, "[http:80/TCP]", "[a]", ""},
		{"agreeing", []clustermesh.ClusterExport{export("b", 2, http), export("a", 1, http)}, "[http:80/TCP]", "[a b]", ""},
		{"ports are a union", []clustermesh.ClusterExport{export("b", 2, dns), export("a", 1, http)}, "[http:80/TCP dns:53/UDP]", "[a b]", "ports: 1/2 clusters disagree (b); their ports differ from those of a; the import has all"},
		{"same name, other number", []clustermesh.ClusterExport{export("a", 1, http), export("b", 2, port("http", l4.TCP, 81))},
			"[http:80/TCP]", "[a b]", "ports[http:81/TCP]: 1/2 clusters disagree (b); the oldest export, from a"},
		{"same number, other name", []clustermesh.ClusterExport{export("a", 1, http), export("b", 2, port("web", l4.TCP, 80))},
			"[http:80/TCP]", "[a b]", "ports[web:80/TCP]"},
		{"age beats name", []clustermesh.ClusterExport{export("a", 5, port("http", l4.TCP, 81)), export("b", 2, http)},
			"[http:80/TCP]", "[b a]", "the oldest export, from b"},
		{"ties go to the lower name", []clustermesh.ClusterExport{export("b", 1, port("http", l4.TCP, 81)), export("a", 1, http)},
			"[http:80/TCP]", "[a b]", "the oldest export, from a"},
		{"types conflict", []clustermesh.ClusterExport{export("a", 1, http), headless}, "[http:80/TCP]", "[a b]", "type: 1/2 clusters disagree (b)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, problems := clustermesh.Merge(tc.in)
			if s := fmt.Sprint(got.Ports); s != tc.ports {
				t.Errorf("ports %s, want %s", s, tc.ports)
			}
			if s := fmt.Sprint(got.Exporters); s != tc.exporters {
				t.Errorf("exporters %s, want %s", s, tc.exporters)
			}
			switch {
			case tc.problem == "" && len(problems) > 0:
				t.Errorf("problems %v", problems)
			case tc.problem != "" && (len(problems) != 1 || !strings.Contains(problems[0].String(), tc.problem)):
				t.Errorf("problems %v, want one with %q", problems, tc.problem)
			}
		})
	}
}

// The order in which exports are learnt must not matter: every cluster computes the same import.
func TestMergeOrderDoesNotMatter(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) clustermesh.ClusterExport {
		n := rapid.SampledFrom([]string{"", "x", "y"})
		e := export(rapid.StringMatching(`[a-e]`).Draw(t, "cluster"), rapid.Int64Range(0, 2).Draw(t, "created"))
		for range rapid.IntRange(1, 3).Draw(t, "ports") {
			e.Ports = append(e.Ports, port(n.Draw(t, "name"), l4.TCP, rapid.Uint16Range(1, 3).Draw(t, "port")))
		}
		return e
	})
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfNDistinct(gen, 1, 5, func(e clustermesh.ClusterExport) clustermesh.ClusterName { return e.Cluster }).Draw(t, "exports")
		one, p1 := clustermesh.Merge(in)
		two, p2 := clustermesh.Merge(rapid.Permutation(in).Draw(t, "order"))
		if fmt.Sprint(one, p1) != fmt.Sprint(two, p2) {
			t.Fatalf("merge depends on order:\n%v %v\n%v %v", one, p1, two, p2)
		}
	})
}
