package connectivity

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

var errNotAsked = errors.New("exec: forbidden")

// TestCauses: a fault that is put into otherwise fine results leads to one cause, which names the part.
func TestCauses(t *testing.T) {
	tunnel := func(state string) []api.Node {
		return []api.Node{{Cluster: "b", Name: "b1", Tunnel: &api.Tunnel{Underlay: netip.MustParseAddrPort("192.0.2.2:31820"), State: state}}}
	}
	across := func(r Result) bool { return r.Client.Cluster == "a" && r.To == "b" && r.Family == "IPv4" }
	silent := problem.Tunnel("b", "b1").Problem(problem.Problem{Code: problem.TunnelSilent, Message: "carries nothing"})
	narrow := problem.Tunnel("b", "b1").Problem(problem.Problem{Code: problem.TunnelNarrow, Message: "large packets are lost", Try: "set mesh.mtu"})
	full := problem.Named("map", "backends").Problem(problem.Problem{Code: problem.MapFull, Message: "full", Try: "enlarge it"})
	for _, c := range []struct {
		name  string
		fails func(Result) bool
		stage Stage
		facts Facts
		code  problem.Code
		says  []string
	}{
		{"the tunnel is silent", across, Connect, Facts{Nodes: map[string]NodeFacts{"a/a1": {Nodes: tunnel("silent"), Problems: []problem.Problem{silent}}}},
			problem.TunnelSilent, []string{"tunnel between a/a1 and b/b1", "31820"}},
		{"the tunnel never had a handshake, and only the other side answers", across, Connect,
			Facts{Nodes: map[string]NodeFacts{"a/a1": {Error: "no answer"}, "b/b1": {Nodes: []api.Node{{Cluster: "a", Name: "a1", Tunnel: &api.Tunnel{State: "never"}}}}}},
			problem.TunnelNever, []string{"tunnel between a/a1 and b/b1"}},
		{"the tunnel is silent in both directions", func(r Result) bool { return r.Client.Cluster != r.To && r.Group == PodAddresses && r.Family == "IPv4" }, Connect,
			Facts{Nodes: map[string]NodeFacts{"a/a1": {Nodes: tunnel("silent"), Problems: []problem.Problem{silent}}, "b/b1": {Nodes: []api.Node{{Cluster: "a", Name: "a1", Tunnel: &api.Tunnel{State: "one-way"}}}}}},
			problem.TunnelSilent, []string{"tunnel between a/a1 and b/b1"}},
		{"CoreDNS has no zone", func(r Result) bool { return r.Client.Cluster == "a" && r.Group == Names }, Resolve,
			Facts{Zones: map[string]bool{"a": false}, Contexts: map[string]string{"a": "ca"}}, "", []string{"zone clusterset.local", "strait dns setup --context ca"}},
		{"CoreDNS has the zone and resolves nothing", func(r Result) bool { return r.Client.Cluster == "a" && r.Group == Names }, Resolve,
			Facts{Zones: map[string]bool{"a": true}}, "", []string{"has the zone", "resolves no name"}},
		{"managed DNS", func(r Result) bool { return r.Client.Cluster == "a" && r.Group == Names }, Resolve, Facts{}, "", []string{"do not resolve", "let strait itself answer"}},
		{"one name", func(r Result) bool { return r.From == "a/a1" && r.Way == ByPodName && r.To == "b" }, Resolve, Facts{}, "", []string{"pod-1.b.pods-b"}},
		{"names in the network of nodes", func(r Result) bool { return r.Client.Host && r.Group == Names }, Resolve, Facts{}, "", []string{"not in the network of its nodes"}},
		{"UDP", func(r Result) bool { return across(r) && r.Proto == "UDP" && !r.Client.Host }, Receive,
			Facts{Namespace: "ns", Policies: map[string][]string{"b": {"tcp-only"}}, Nodes: map[string]NodeFacts{"a/a1": {Nodes: tunnel("carrying")}}}, "", []string{"TCP passes and UDP does not", "ns/tcp-only in cluster b"}},
		{"a NetworkPolicy", func(r Result) bool { return across(r) && !r.Client.Host }, Connect,
			Facts{Namespace: "ns", Policies: map[string][]string{"b": {"deny"}}, Nodes: map[string]NodeFacts{"a/a1": {Nodes: tunnel("carrying")}}}, "", []string{"although the tunnel", "ns/deny in cluster b"}},
		{"the node's own packets", func(r Result) bool { return across(r) && r.Client.Host }, Connect,
			Facts{Nodes: map[string]NodeFacts{"a/a1": {Nodes: tunnel("carrying")}}}, "", []string{"source address"}},
		{"a narrow tunnel", func(r Result) bool { return across(r) && r.Size > small }, Receive,
			Facts{Nodes: map[string]NodeFacts{"a/a1": {Nodes: tunnel("narrow"), Problems: []problem.Problem{narrow}}}}, problem.TunnelNarrow, []string{"large packets are lost", "mesh.mtu"}},
		{"a narrow path that no probe saw", func(r Result) bool { return across(r) && r.Size > small && !r.Client.Host }, Receive, Facts{}, "", []string{"small packets pass", "mesh.mtu"}},
		{"fragments", func(r Result) bool { return across(r) && r.Size == fragments && !r.Client.Host }, Receive, Facts{}, "", []string{"fragments"}},
		{"the balancer", func(r Result) bool { return across(r) && r.Way == ByClusterSetIP && !r.Client.Host }, Connect,
			Facts{Nodes: map[string]NodeFacts{"a/a1": {Nodes: tunnel("carrying"), Problems: []problem.Problem{full}}}}, problem.MapFull, []string{"full"}},
		{"a frontend that is not in the kernel", func(r Result) bool { return across(r) && r.Way == ByClusterSetIP && !r.Client.Host }, Connect,
			Facts{Nodes: map[string]NodeFacts{"a/a1": {Services: map[string]api.Service{"b": {Frontends: []api.Frontend{{Tier: "clusterset"}}}}}}}, "", []string{"kernel's map differs"}},
		{"nothing is known", func(r Result) bool { return across(r) && r.Way == ByClusterSetIP && !r.Client.Host }, Connect, Facts{}, "", []string{"not by ClusterSetIP", "strait explain"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			results, failed := broken(c.fails, c.stage)
			got := Causes(results, c.facts)
			if failed == 0 || len(got) != 1 {
				t.Fatalf("%d failures have the causes %+v, want one", failed, got)
			}
			if text := got[0].Message + "; " + got[0].Try; got[0].Code != c.code || got[0].Try == "" || len(got[0].Results) != failed {
				t.Errorf("%d failures, %+v, want code %q for all", failed, got[0], c.code)
			} else {
				for _, s := range c.says {
					if !strings.Contains(text, s) {
						t.Errorf("%s: does not name %q", text, s)
					}
				}
			}
		})
	}
}

// broken judges all cases as fine, but for those that fail. Cluster b has the import that pair leaves out.
func broken(fails func(Result) bool, stage Stage) (out []Result, failed int) {
	clusters := pair()
	clusters[1].Imports["a"] = clusters[0].Imports["a"]
	for _, c := range Cases("ns", clusters) {
		r := Judge(c, Outcome{Stage: Done, Server: Identity{c.To, c.To + "1", "pod-1"}}, nil)
		if fails(r) {
			r.State, r.Stage, r.Error = Failed, stage, "no answer in time"
			failed++
		}
		out = append(out, r)
	}
	return out, failed
}

// TestImportMissing: a cluster without the import says why, from the export to the network between them.
func TestImportMissing(t *testing.T) {
	var results []Result
	for _, c := range Cases("ns", pair()) {
		results = append(results, Judge(c, Outcome{Stage: Done, Server: Identity{c.To, c.To + "1", "pod-1"}}, nil))
	}
	known := []api.Cluster{{Name: "b", State: api.Here}, {Name: "a", State: api.Held}}
	for _, c := range []struct {
		name  string
		facts Facts
		says  string
	}{
		{"a refused export", Facts{Exports: map[string]string{"a": "Valid is False: no such Service"}}, "Valid is False"},
		{"a cluster that is not heard", Facts{Nodes: map[string]NodeFacts{"b/b1": {Clusters: known}}}, "does not hear cluster a"},
		{"a cluster that is not known", Facts{Nodes: map[string]NodeFacts{"b/b1": {Clusters: known[:1]}}}, "does not know cluster a"},
		{"gossip", Facts{Nodes: map[string]NodeFacts{"b/b1": {Clusters: known, Problems: []problem.Problem{{Code: problem.GossipKeyDiffers, Message: "another key"}}}}}, "another key"},
		{"nothing is known", Facts{}, "has no ServiceImport"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Causes(results, c.facts)
			if len(got) != 1 || len(got[0].Results) != 7 || !strings.Contains(got[0].Message, c.says) || got[0].Try == "" {
				t.Errorf("%+v, want one that says %q", got, c.says)
			}
		})
	}
}

func TestMatrix(t *testing.T) {
	results, _ := broken(func(r Result) bool { return r.Client.Host && r.To == "b" && r.Way == ByName }, Connect)
	results[0].State = Unknown
	rows := Report{Clusters: []string{"a", "b"}, Results: results}.Matrix()
	if len(rows) != 3 || rows[0].Cells[0] != (Cell{23, 1, 24}) || rows[1].Kind != "host" || rows[1].Cells[1] != (Cell{11, 0, 12}) {
		t.Errorf("%+v", rows)
	}
}
