package clustermesh_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
)

// Each property of KEP-1645's table of conflicts: reason, field, winner and losers, and whose word
// the import has.
func TestConflicts(t *testing.T) {
	http, dns := port("http", l4.TCP, 80), port("dns", l4.UDP, 53)
	with := func(cluster string, created int64, edit func(*clustermesh.Export)) clustermesh.ClusterExport {
		e := export(cluster, created, http)
		e.Families = []clustermesh.Family{clustermesh.IPv4}
		edit(&e.Export)
		return e
	}
	plain := func(*clustermesh.Export) {}
	affinity := func(s uint32) func(*clustermesh.Export) {
		return func(e *clustermesh.Export) { e.AffinitySeconds = s }
	}
	policy := func(p string) func(*clustermesh.Export) {
		return func(e *clustermesh.Export) { e.InternalTrafficPolicy = p }
	}
	spread := func(d string) func(*clustermesh.Export) {
		return func(e *clustermesh.Export) { e.TrafficDistribution = d }
	}
	labels := func(kv ...string) func(*clustermesh.Export) {
		return func(e *clustermesh.Export) { e.Labels = map[string]string{kv[0]: kv[1]} }
	}
	notes := func(kv ...string) func(*clustermesh.Export) {
		return func(e *clustermesh.Export) { e.Annotations = map[string]string{kv[0]: kv[1]} }
	}
	families := func(f ...clustermesh.Family) func(*clustermesh.Export) {
		return func(e *clustermesh.Export) { e.Families = f }
	}
	ports := func(p ...clustermesh.ServicePort) func(*clustermesh.Export) {
		return func(e *clustermesh.Export) { e.Ports = p }
	}
	headless := func(e *clustermesh.Export) { e.Type = clustermesh.Headless }
	h2 := http
	h2.AppProtocol = "kubernetes.io/h2c"
	// The exports are of clusters a, b, c in this order of age.
	for _, tc := range []struct {
		name  string
		edits []func(*clustermesh.Export)
		want  string // reason field winner [losers] total, joined by ";"
	}{
		{"all agree", []func(*clustermesh.Export){plain, plain}, ""},
		{"type", []func(*clustermesh.Export){headless, plain, headless}, "TypeConflict type a [b] 3"},
		{"affinity on and off", []func(*clustermesh.Export){affinity(10), plain, affinity(10)}, "SessionAffinityConflict sessionAffinity a [b] 3"},
		{"affinity time-out", []func(*clustermesh.Export){affinity(10), affinity(20)}, "SessionAffinityConfigConflict sessionAffinityConfig a [b] 2"},
		{"headless has no affinity", []func(*clustermesh.Export){affinity(10), headless}, "TypeConflict type a [b] 2"},
		{"policy", []func(*clustermesh.Export){policy("Local"), policy("Cluster")}, "InternalTrafficPolicyConflict internalTrafficPolicy a [b] 2"},
		{"policy unsaid is Cluster", []func(*clustermesh.Export){plain, policy("Cluster")}, ""},
		{"distribution", []func(*clustermesh.Export){plain, spread("PreferSameZone"), plain}, "TrafficDistributionConflict trafficDistribution a [b] 3"},
		{"distribution's old name", []func(*clustermesh.Export){spread("PreferClose"), spread("PreferSameZone")}, ""},
		{"labels as a whole", []func(*clustermesh.Export){labels("a", "1"), labels("b", "2"), plain}, "LabelsConflict exportedLabels a [b c] 3"},
		{"annotations as a whole", []func(*clustermesh.Export){notes("a", "1"), notes("a", "2")}, "AnnotationsConflict exportedAnnotations a [b] 2"},
		{"a family reaches a part only", []func(*clustermesh.Export){families("IPv4", "IPv6"), families("IPv6", "IPv4"), families("IPv4")}, "IPFamilyConflict ipFamilies a [c] 3"},
		{"every family of the import reaches all", []func(*clustermesh.Export){families("IPv4"), families("IPv4", "IPv6")}, ""},
		{"an export that says no family is not judged", []func(*clustermesh.Export){families("IPv4"), families()}, ""},
		{"more ports", []func(*clustermesh.Export){plain, ports(http, dns), ports(dns, http)}, "PortConflict ports a [b c] 3"},
		{"fewer ports", []func(*clustermesh.Export){ports(http, dns), plain}, "PortConflict ports a [b] 2"},
		{"order of ports", []func(*clustermesh.Export){ports(http, dns), ports(dns, http)}, ""},
		{"the owner of a port wins", []func(*clustermesh.Export){plain, ports(http, dns), ports(http, port("dns", l4.UDP, 54))},
			"PortConflict ports a [b] 3;PortConflict ports[dns:54/UDP] b [c] 3"},
		{"name and number of two ports", []func(*clustermesh.Export){ports(http, dns), ports(port("http", l4.UDP, 53))}, "PortConflict ports[http:53/UDP] a [b] 2"},
		{"appProtocol", []func(*clustermesh.Export){plain, ports(h2)}, "PortConflict ports[http:80/TCP].appProtocol a [b] 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var in []clustermesh.ClusterExport
			for i, edit := range tc.edits {
				in = append(in, with(string(rune('a'+i)), int64(i), edit))
			}
			slices.Reverse(in)
			got, problems := clustermesh.Merge(in)
			var lines []string
			for _, c := range got.Conflicts {
				lines = append(lines, fmt.Sprint(c.Reason, " ", c.Field, " ", c.Winner, " ", c.Losers, " ", c.Total))
			}
			if s := strings.Join(lines, ";"); s != tc.want {
				t.Errorf("conflicts %q, want %q", s, tc.want)
			}
			if len(problems) != len(lines) {
				t.Errorf("%d problems of %d conflicts: %v", len(problems), len(lines), problems)
			}
			checkOldest(t, got, in[len(in)-1])
		})
	}
}

// checkOldest wants every field but the ports to be the oldest export's.
func checkOldest(t *testing.T, got clustermesh.Import, oldest clustermesh.ClusterExport) {
	t.Helper()
	word := func(v ...any) string { return fmt.Sprint(v...) }
	g := word(got.Type, got.AffinitySeconds, got.InternalTrafficPolicy, got.TrafficDistribution, got.Families, got.Labels, got.Annotations, got.Created)
	w := word(oldest.Type, oldest.AffinitySeconds, oldest.InternalTrafficPolicy, oldest.TrafficDistribution, oldest.Families, oldest.Labels, oldest.Annotations, oldest.Created)
	if g != w {
		t.Errorf("import %s, want the oldest export's %s", g, w)
	}
}

// An import never lacks a family: API objects and DNS need one, also for headless services.
func TestMergeFamilies(t *testing.T) {
	silent, dual := export("a", 1), export("b", 2)
	silent.Type = clustermesh.Headless
	dual.Families = []clustermesh.Family{clustermesh.IPv6, clustermesh.IPv4}
	if got, _ := clustermesh.Merge([]clustermesh.ClusterExport{silent}); !slices.Equal(got.Families, []clustermesh.Family{clustermesh.IPv4}) {
		t.Errorf("no export has a family: %v", got.Families)
	}
	if got, _ := clustermesh.Merge([]clustermesh.ClusterExport{silent, dual}); !slices.Equal(got.Families, dual.Families) {
		t.Errorf("only the younger says families: %v, want its word", got.Families)
	}
	dual.FamiliesDeclared = true
	if got, _ := clustermesh.Merge([]clustermesh.ClusterExport{silent, dual}); got.FamiliesDeclared {
		t.Error("the younger's declaration counts, and what the oldest is, is unknown")
	}
	if got, _ := clustermesh.Merge([]clustermesh.ClusterExport{silent, dual}[1:]); !got.FamiliesDeclared {
		t.Error("a declaration does not count")
	}
	silent.FamiliesDeclared = true
	if got, _ := clustermesh.Merge([]clustermesh.ClusterExport{silent}); got.FamiliesDeclared {
		t.Error("no families count as declared")
	}
}

// Whatever the exports say: names, and pairs of protocol and number, are unique in the union; every
// port of the oldest is in it; a conflict has a winner that is not among its losers; no difference
// goes without a conflict.
func TestMergeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in []clustermesh.ClusterExport
		for i := range rapid.IntRange(1, 4).Draw(t, "exports") {
			e := export(string(rune('a'+i)), int64(i))
			for range rapid.IntRange(0, 3).Draw(t, "ports") {
				p := port(rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "name"), l4.TCP, rapid.Uint16Range(1, 3).Draw(t, "port"))
				if !slices.ContainsFunc(e.Ports, func(q clustermesh.ServicePort) bool { return q.Name == p.Name || q.Port == p.Port }) {
					e.Ports = append(e.Ports, p)
				}
			}
			in = append(in, e)
		}
		got, _ := clustermesh.Merge(in)
		seen := map[any]bool{}
		for _, p := range got.Ports {
			if seen[p.Name] || seen[p.Port] {
				t.Fatalf("ports %v", got.Ports)
			}
			seen[p.Name], seen[p.Port] = true, true
		}
		differ := false
		for _, e := range in {
			for _, p := range e.Ports {
				if e.Cluster == "a" && !slices.Contains(got.Ports, p) {
					t.Fatalf("port %s of the oldest is missing in %v", p, got.Ports)
				}
				differ = differ || !slices.Contains(in[0].Ports, p)
			}
			differ = differ || len(e.Ports) != len(in[0].Ports)
		}
		if differ != (len(got.Conflicts) > 0) {
			t.Fatalf("differ %v, conflicts %v", differ, got.Conflicts)
		}
		for _, c := range got.Conflicts {
			if len(c.Losers) == 0 || slices.Contains(c.Losers, c.Winner) || c.Total != len(in) {
				t.Fatalf("conflict %+v", c)
			}
		}
	})
}

func TestBarred(t *testing.T) {
	b := clustermesh.Barred{"team-*", "x", "[", ""}
	for name, want := range map[string]bool{"kube-system/a": true, "kube-public/a": true, "kube-node-lease/a": true, "default/kubernetes": true,
		"default/a": false, "team-1/a": true, "team/a": false, "x/a": true, "xy/a": false} {
		s, err := clustermesh.ParseServiceName(name)
		if err != nil {
			t.Fatal(err)
		}
		if why := b.Why(s); (why != "") != want {
			t.Errorf("%s: barred %q, want %v", name, why, want)
		}
	}
	for pattern, says := range map[string]string{"team-*": "", "[a-c]?": "", "c-a": "", "[^c]-[a]": "", "[": "write a name", "": "write a name",
		`a\-b`: "write a name", "[c-a]": "write a-c", "x[^ab-cz-9]": "write 9-z"} {
		err := clustermesh.Barred{"good", pattern}.Check()
		if (err == nil) != (says == "") || err != nil && (!strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), fmt.Sprintf("%q", pattern))) {
			t.Errorf("%q: %v, want %q", pattern, err, says)
		}
	}
}
