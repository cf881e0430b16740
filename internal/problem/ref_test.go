package problem_test

import (
	"encoding/json"
	"strings"
	"testing"

	"strait.io/strait/internal/problem"
)

func TestRef(t *testing.T) {
	elsewhere := problem.Object("ServiceExport", "default", "serve")
	elsewhere.Cluster = "us-east"
	for want, r := range map[string]problem.Ref{
		"cluster us-east":                                problem.Cluster("us-east"),
		"node us-east/n1":                                problem.Node("us-east", "n1"),
		"record us-east/n1":                              problem.Record("us-east", "n1"),
		"record us-east":                                 problem.Record("us-east", ""),
		"tunnel to us-east/n1":                           problem.Tunnel("us-east", "n1"),
		"Node n1":                                        problem.Object("Node", "", "n1"),
		"ServiceExport default/serve":                    problem.Object("ServiceExport", "default", "serve"),
		"ServiceExport.net.gke.io default/serve":         problem.Object("ServiceExport.net.gke.io", "default", "serve"),
		"ServiceExport default/serve of cluster us-east": elsewhere,
		"map backends":                                   problem.Named("map", "backends"),
		"netfilter":                                      problem.Named("netfilter", ""),
	} {
		p := r.Problem(problem.Problem{Code: problem.MapFull, Object: "other", Message: "m"})
		if r.String() != want || p.Object != want || p.Ref != r || p.Message != "m" {
			t.Errorf("%q, %+v; want %q", r, p, want)
		}
	}
}

func TestConcerns(t *testing.T) {
	elsewhere := problem.Object("ServiceExport", "a", "b")
	elsewhere.Cluster = "c"
	for _, c := range []struct {
		r    problem.Ref
		want bool
	}{
		{problem.Cluster("c"), true}, {problem.Node("c", "n"), true}, {problem.Record("c", ""), true}, {problem.Tunnel("c", "n"), true}, {elsewhere, true},
		{problem.Cluster("d"), false}, {problem.Node("d", "c"), false}, {problem.Object("Service", "c", "c"), false}, {problem.Named("map", "c"), false}, {problem.Ref{}, false},
	} {
		if got := c.r.Concerns("c"); got != c.want {
			t.Errorf("%s: %v", c.r, got)
		}
	}
}

// TestRefOnTheWire: a program finds the parts beside the text; without a name, there is only the text.
func TestRefOnTheWire(t *testing.T) {
	b, err := json.Marshal(problem.Node("c", "n").Problem(problem.Problem{Code: "STR1", Message: "m"}))
	if want := `{"code":"STR1","object":"node c/n","ref":{"kind":"node","cluster":"c","name":"n"},"message":"m"}`; err != nil || string(b) != want {
		t.Errorf("%s, %v; want %s", b, err, want)
	}
	b, err = json.Marshal(problem.Problem{Code: "STR1", Object: "seeds", Message: "m"})
	if want := `{"code":"STR1","object":"seeds","message":"m"}`; err != nil || string(b) != want {
		t.Errorf("%s, %v; want %s", b, err, want)
	}
}

// TestCleanRef: names of others cannot control a terminal through the Ref either.
func TestCleanRef(t *testing.T) {
	p := problem.Node("c\x1b[2J", "n\n").Problem(problem.Problem{Code: "STR1"}).Clean()
	if strings.ContainsAny(p.Ref.Cluster+p.Ref.Name, "\x1b\n") || p.Object != p.Ref.String() {
		t.Errorf("%q, %+v", p.Object, p.Ref)
	}
}

func TestArea(t *testing.T) {
	for code, want := range map[problem.Code]problem.Area{problem.SeedSilent: problem.Gossip, problem.TunnelSilent: problem.Tunnels, "": 0, "STR": 0} {
		if got := code.Area(); got != want {
			t.Errorf("%s: %c, want %c", code, got, want)
		}
	}
}
