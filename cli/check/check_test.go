package check

import (
	"slices"
	"strings"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// well are two clusters of two nodes in which all is well.
func well() (out []Node) {
	for _, name := range []string{"c1/n1", "c1/n2", "c2/n1", "c2/n2"} {
		cluster, node, _ := strings.Cut(name, "/")
		s := &api.Status{Cluster: cluster, Node: node, Version: "v1", Ready: true, Leader: node == "n1", Authority: api.AuthorityPinned, Datapath: api.Datapath{
			Attached: true, Features: []datapath.Feature{{Name: "bpf links", OK: true}}, Maps: []datapath.MapUsage{{Map: "frontends", Used: 10, Limit: 100}},
		}}
		for _, other := range []string{"c1", "c2"} {
			c := api.Cluster{Name: other, State: api.Joined, Nodes: 2, Alive: 2, Tunnels: &api.Tunnels{States: map[string]int{"carrying": 2}}}
			if other == cluster {
				c.State, c.Tunnels = api.Here, nil
			}
			s.Clusters = append(s.Clusters, c)
		}
		out = append(out, Node{Name: name, Cluster: cluster, Status: s})
	}
	return out
}

// asAnswered gives a node's status what every answer has.
func asAnswered(n Node) { *n.Status = api.NewStatusAnswer(*n.Status).Status }

// TestWell: if all is well, every check holds.
func TestWell(t *testing.T) {
	checks := Run(well(), "v1")
	for _, c := range checks {
		if c.State != OK || len(c.Findings) > 0 || c.Title == "" || c.Category == "" {
			t.Errorf("%+v", c)
		}
	}
	if len(checks) < 15 || Worst(checks) != OK {
		t.Errorf("%d checks, of which the worst is %s", len(checks), Worst(checks))
	}
}

// TestFaults: each fault fails its check and no other, with the nodes that have it and what to do.
func TestFaults(t *testing.T) {
	for what, c := range map[string]struct {
		fault func(nodes []Node)
		title string
		state State
		says  string
		nodes string
	}{
		"no answer": {func(n []Node) {
			n[3].Status, n[3].Error, n[3].Try = nil, "straitd does not answer in time", "ask again"
		},
			"every daemon answers", Unknown, "does not answer in time", "c2/n2"},
		"not ready": {func(n []Node) { n[1].Status.Ready, n[1].Status.Waiting = false, []string{"gossip"} },
			"every daemon is ready", Failed, "waits for gossip", "c1/n2"},
		"older": {func(n []Node) { n[0].Status.Version = "v0" },
			"the daemons have one version, which is this program's", Warning, "straitd is v0, and most others are v1", "c1/n1"},
		"a feature is missing": {func(n []Node) { n[2].Status.Datapath.Features[0] = datapath.Feature{Name: "bpf links", Since: "5.7"} },
			"it has every feature that strait can use", Failed, "Linux has since 5.7", "c2/n1"},
		"not attached": {func(n []Node) { n[0].Status.Datapath.Attached, n[1].Status.Datapath.Attached = false, false },
			"the socket hooks are attached", Failed, "bypass strait", "c1/n1 c1/n2"},
		"a full map": {func(n []Node) {
			n[0].Status.Datapath.Maps[0].Used, n[0].Status.Datapath.Maps[0].Setting = 90, "maps.frontends"
			asAnswered(n[0])
		},
			"the kernel's maps have room", Warning, "map frontends: is 90 % full", "c1/n1"},
		"another program": {func(n []Node) {
			n[1].Status.Datapath.Foreign = []datapath.ForeignProgram{{Hook: "connect4", Name: "other"}}
			asAnswered(n[1])
		},
			"no other program decides first", Warning, "run before strait's (other", "c1/n2"},
		"a blocked tunnel that is reported": {func(n []Node) {
			n[0].Status.Clusters[1].Tunnels.States = map[string]int{"carrying": 1, "silent": 1}
			n[0].Status.Problems = []problem.Problem{{Code: problem.TunnelSilent, Object: "tunnel to c2/n1", Message: "carries nothing"}}
		},
			"the tunnels carry packets", Failed, "tunnel to c2/n1: carries nothing", "c1/n1"},
		"no leader, which a daemon reports": {func(n []Node) {
			n[2].Status.Leader = false
			n[3].Status.Problems = []problem.Problem{{Code: problem.NobodyLeads, Object: "Deployment strait-leader", Message: "none of its pods"}}
		},
			"each cluster has a leader", Failed, "none of its pods", "c2/n2"},
		"no pins, which a daemon reports": {func(n []Node) {
			n[0].Status.Authority = api.AuthorityEverybody
			n[0].Status.Problems = []problem.Problem{{Code: problem.EverybodyTrusted, Object: "cluster c1", Message: "every holder of the key", Warning: true}}
		},
			"only pinned clusters are trusted", Warning, "cluster c1: every holder of the key", "c1/n1"},
		"a cluster is not heard": {func(n []Node) { n[1].Status.Clusters[1].State = api.Held },
			"every node hears every cluster", Failed, "cluster c2 is held", "c1/n2"},
		"a node is gone": {func(n []Node) { n[0].Status.Clusters[1].Alive, n[0].Status.Clusters[1].Dead = 1, 1 },
			"every node of every cluster is alive", Warning, "1 of 2 nodes of cluster c2 are alive, and 1 dead", "c1/n1"},
		"a machine that is off, to which a tunnel leads": {func(n []Node) {
			n[0].Status.Clusters[1].Alive, n[0].Status.Clusters[1].Dead = 1, 1
			n[0].Status.Clusters[1].Tunnels.States = map[string]int{"carrying": 1, "silent": 1}
			n[0].Status.Problems = []problem.Problem{problem.Node("c2", "n1").Problem(problem.Problem{Code: problem.NodeDead, Message: "not heard", Try: "start it", Warning: true})}
		},
			"every node of every cluster is alive", Warning, "node c2/n1: not heard", "c1/n1"},
		"a blocked tunnel": {func(n []Node) { n[0].Status.Clusters[1].Tunnels.States = map[string]int{"carrying": 1, "one-way": 1} },
			"the tunnels carry packets", Failed, "1 tunnel to cluster c2: one-way", "c1/n1"},
		"a tunnel that carries again": {func(n []Node) { n[0].Status.Clusters[1].Tunnels.States = map[string]int{"carrying": 1, "returning": 1} },
			"the tunnels carry packets", Warning, "1 tunnel to cluster c2: returning", "c1/n1"},
		"no leader": {func(n []Node) { n[2].Status.Leader = false },
			"each cluster has a leader", Failed, "cluster c2", ""},
		"no pins": {func(n []Node) { n[0].Status.Authority = api.AuthorityEverybody },
			"only pinned clusters are trusted", Warning, "every holder of the gossip key", "c1/n1"},
		"a problem": {func(n []Node) {
			n[0].Status.Problems = []problem.Problem{{Code: "STR5102", Object: "gossip seed 192.0.2.1:7946", Message: "does not answer"}}
		}, "no problems with gossip and replication", Failed, "gossip seed 192.0.2.1:7946: does not answer", "c1/n1"},
	} {
		nodes := well()
		c.fault(nodes)
		checks := Run(nodes, "v1")
		var bad []Check
		for _, k := range checks {
			if k.State != OK {
				bad = append(bad, k)
			}
		}
		if len(bad) != 1 || bad[0].Title != c.title || bad[0].State != c.state || Worst(checks) != c.state || len(bad[0].Findings) != 1 {
			t.Errorf("%s: %+v", what, bad)
			continue
		}
		f := bad[0].Findings[0]
		if !strings.Contains(f.Message, c.says) || strings.Join(f.Nodes, " ") != c.nodes || f.Try == "" {
			t.Errorf("%s: %+v", what, f)
		}
	}
}

// TestUnanswered: if others know why a daemon does not answer, that is what the check says.
func TestUnanswered(t *testing.T) {
	nodes := well()
	nodes[3].Status, nodes[3].Error = nil, "no answer"
	nodes[0].Status.Problems = []problem.Problem{problem.Node("c2", "n2").Problem(problem.Problem{Code: problem.NodeDead, Message: "not heard", Try: "start it", Warning: true})}
	f := Run(nodes, "v1")[0].Findings
	if len(f) != 1 || f[0].Code != problem.NodeDead || f[0].Severity() != Unknown || f[0].Message != "node c2/n2: not heard" || f[0].Try != "start it" || f[0].Nodes[0] != "c2/n2" {
		t.Errorf("%+v", f)
	}
}

// TestGroups: every problem that there is has a check.
func TestGroups(t *testing.T) {
	var digits []string
	for _, g := range groups {
		digits = append(digits, string(g.digit))
	}
	for _, code := range []problem.Code{"STR1001", "STR2308", "STR3103", "STR4001", "STR8105", "STR5102", "STR6001", "STR7001"} {
		if !slices.Contains(digits, string(code[3])) {
			t.Errorf("no check has problems such as %s", code)
		}
	}
}
