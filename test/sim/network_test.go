package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/node"
)

// started is a clusterset whose machines start at once.
func started(cfg Config) *Network {
	w := New(cfg)
	for _, m := range w.Machines {
		w.start(m)
	}
	return w
}

// TestNetwork: nodes of two clusters agree on all records, each cluster has one leader, and a machine that dies
// is claimed silent by the others of its cluster, and comes back. No clock, socket or goroutine is needed for
// that.
func TestNetwork(t *testing.T) {
	for name, pinned := range map[string]bool{"everyone is believed": false, "pinned": true} {
		t.Run(name, func(t *testing.T) {
			w := started(Config{Seed: *seed, Clusters: 2, Nodes: 4, Endpoints: 1, Pinned: pinned})
			w.Run(10 * time.Second)
			if err := w.Agrees(); err != nil {
				t.Fatal(err)
			}
			dead := w.Machines[0]
			dead.TurnOff()
			w.Run(time.Minute)
			if !w.Machines[1].node.Leader() {
				t.Error("the next name does not lead")
			}
			for _, m := range w.Machines[1:] {
				s := m.node.State()
				if c := s.Contacts.Get(dead.Self); c != clustermesh.Silent {
					t.Errorf("%s sees the dead machine as %s", m.Self, c)
				}
				if !s.Dead(dead.Self) {
					t.Errorf("%s does not know that it is dead", m.Self)
				}
			}
			w.Recover()
			w.Run(20 * time.Second)
			if err := w.Agrees(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOutsideLeader: the leader is not the lowest name but the one that Config.Lead names; one that loses the lead
// withdraws nothing.
func TestOutsideLeader(t *testing.T) {
	w := New(Config{Seed: *seed, Clusters: 1, Nodes: 2})
	first, second := w.Machines[0], w.Machines[1]
	var is bool
	var since uint64
	var name string
	first.lead = func() (bool, uint64) { return false, 0 }
	second.lead = func() (bool, uint64) { return is, since }
	second.leads = func() clustermesh.Content {
		return clustermesh.Content{Exports: []clustermesh.Export{{
			Service: clustermesh.ServiceName{Namespace: "default", Name: name},
			Type:    clustermesh.ClusterSetIP, Ports: []clustermesh.ServicePort{{Port: 80, Proto: 6}},
		}}}
	}
	first.Start(second)
	second.Start(first)
	w.Run(10 * time.Second)
	if first.node.Leader() || second.node.Leader() {
		t.Fatal("a node leads that Config.Lead does not name")
	}
	lead := func(leads bool, epoch uint64) {
		t.Helper()
		is, since = leads, epoch
		if w.Run(time.Second); second.node.Leader() != leads {
			t.Errorf("it leads: %v", second.node.Leader())
		}
	}
	publish := func(what, want string, epoch uint64) {
		t.Helper()
		name = what
		second.do(func(n *node.Node, now time.Time) { n.PublishCluster(second.leads(), now) })
		w.Run(5 * time.Second)
		r, _ := first.node.Record(clustermesh.Origin{Cluster: first.Self.Cluster})
		got := ""
		if len(r.Content.Exports) == 1 {
			got = r.Content.Exports[0].Service.Name
		}
		if got != want || r.Stamp.Epoch != epoch {
			t.Errorf("after %s, the record has %q, in epoch %d; want %q, %d", what, got, r.Stamp.Epoch, want, epoch)
		}
	}
	publish("too-early", "", 0)
	lead(true, 1000)
	publish("x", "x", 1000)
	lead(false, 1000)
	publish("too-late", "x", 1000)
	lead(true, 2000)
	publish("y", "y", 2000)
}

// TestClockCorrected: a daemon started, and was elected, while its clock was ahead. Now the clock is right,
// and what it writes of itself and of its cluster is believed, without a restart.
func TestClockCorrected(t *testing.T) {
	const year = 365 * 24 * time.Hour
	w := New(Config{Seed: *seed, Clusters: 2, Nodes: 1})
	right, wrong := w.Machines[0], w.Machines[1]
	wrong.ahead = year
	wrong.lead = func() (bool, uint64) { return true, uint64(start.Add(year).UnixMilli()) }
	right.Start(wrong)
	wrong.Start(right)
	w.Run(10 * time.Second)
	cluster := clustermesh.Origin{Cluster: wrong.Self.Cluster}
	r, _ := right.node.Record(wrong.Self)
	if es := r.Content.Endpoints; len(es) != 1 || es[0].Pod != wrong.content(1).Endpoints[0].Pod {
		t.Errorf("what the node writes is not believed: %v; %v", es, right.node.Problems(right.clock()))
	}
	believed, _ := right.node.Record(cluster)
	if len(believed.Content.Nodes) != 1 {
		t.Error("what its cluster writes is not believed")
	}
	ps := wrong.node.Problems(wrong.clock())
	if !slices.ContainsFunc(ps, func(p clustermesh.Problem) bool {
		text := p.String()
		return strings.Contains(text, "node "+wrong.Self.String()) && strings.Contains(text, "clock was 8760h") &&
			strings.Contains(text, "other nodes believe this one again within seconds")
	}) {
		t.Errorf("no Problem says so: %v", fmt.Sprint(ps))
	}
	if c := right.node.State().Contacts.Get(wrong.Self); c != clustermesh.Alive {
		t.Errorf("contact %s", c)
	}
	w.Run(10 * time.Second)
	if now, _ := right.node.Record(cluster); now.Stamp != believed.Stamp {
		t.Errorf("the cluster's record is stamped again and again: %s, %s", believed.Stamp, now.Stamp)
	}
}
