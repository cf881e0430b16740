package plan_test

import (
	"net/netip"
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/daemon/plan/mesh"
)

// TestHeldEnd: a node keeps its tunnel when another one says later that it has the same key or
// address, whichever name is lower, also while the node is dead. Only a live node of its own cluster
// takes the place of a dead one.
func TestHeldEnd(t *testing.T) {
	stealKey := func(from clustermesh.Node, n *clustermesh.Node) { n.PublicKey = from.PublicKey }
	stealAddress := func(from clustermesh.Node, n *clustermesh.Node) { n.Addresses = slices.Clone(from.Addresses) }
	for name, steal := range map[string]func(clustermesh.Node, *clustermesh.Node){"key": stealKey, "address": stealAddress} {
		for _, tc := range []struct {
			thief, victim clustermesh.Origin
			dead, wins    bool
		}{
			{thief: origin("b", "n1"), victim: origin("c", "n1")},
			{thief: origin("c", "n1"), victim: origin("b", "n1")},
			{thief: origin("b", "n1"), victim: origin("c", "n1"), dead: true},
			{thief: origin("c", "n1"), victim: origin("c", "n2")},
			{thief: origin("c", "n1"), victim: origin("c", "n2"), dead: true, wins: true},
		} {
			p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
			s := clusterset()
			p.plan(s)
			s = clustermesh.State{Records: s.Records, Contacts: s.Contacts}
			victim := *s.Records.Get(tc.victim).Content.Node
			edit(&s, string(tc.thief.Cluster), string(tc.thief.Node), func(c *clustermesh.Content) {
				n := *c.Node
				steal(victim, &n)
				c.Node = &n
			})
			if tc.dead {
				kill(string(tc.victim.Cluster), string(tc.victim.Node))(&s)
			}
			got := p.plan(s)
			has := func(o clustermesh.Origin) bool {
				return slices.ContainsFunc(got.Mesh.Ends, func(e mesh.End) bool { return e.Origin == o && e.Why == "" })
			}
			if has(tc.thief) != tc.wins || has(tc.victim) == tc.wins {
				t.Errorf("%s of %s, claimed by %s (dead: %t): the peers are %s, problems %v", name, tc.victim, tc.thief, tc.dead, peersOf(got), got.Problems)
			}
		}
	}
}

func origin(cluster, node string) clustermesh.Origin {
	return clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}
}

// TestLearningGivesNothing: what a plan gave to the only one that was heard yet, while others were not, that
// one did not have before. The same claim counts once a plan was made from all that there is.
func TestLearningGivesNothing(t *testing.T) {
	first, second := origin("b", "n1"), origin("c", "n1")
	for name, same := range map[string]func(from, n *clustermesh.Node){
		"key":     func(from, n *clustermesh.Node) { n.PublicKey = from.PublicKey },
		"address": func(from, n *clustermesh.Node) { n.Addresses = slices.Clone(from.Addresses) },
		"prefix":  func(from, n *clustermesh.Node) { n.Prefixes = slices.Clone(from.Prefixes) },
		"prefix over an address": func(from, n *clustermesh.Node) {
			n.Prefixes = []netip.Prefix{netip.PrefixFrom(from.Addresses[0], 32)}
		},
	} {
		for _, at := range []clustermesh.Origin{origin("a", "n1"), first} {
			for _, learning := range []bool{true, false} {
				s := clusterset()
				from := s.Records.Get(second).Content.Node
				edit(&s, "b", "n1", func(c *clustermesh.Content) { same(from, c.Node) })
				heard := s
				heard.Records = s.Records
				heard.Records = heard.Records.Without(second)
				p := newSeries(plan.Self{Cluster: at.Cluster, Node: at.Node}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
				p.Learning = learning
				p.plan(heard)
				p.Learning = false
				want := !learning || name == "prefix" && at == first // a cluster believes itself first
				for _, e := range p.plan(s).Mesh.Ends {
					if got := e.Why == "" && len(e.AllowedIPs) > 0; e.Origin == first && got != want {
						t.Errorf("%s, planned by %s, learning %t: %s has it: %t, %s", name, at, learning, first, got, e.Why)
					}
				}
			}
		}
	}
}

// TestHadByTheDevice: a daemon that was restarted gives contested things to whom the device had them for.
func TestHadByTheDevice(t *testing.T) {
	victim, thief := origin("c", "n1"), origin("b", "n1")
	for name, steal := range map[string]func(from, n *clustermesh.Node){
		"key":     func(from, n *clustermesh.Node) { n.PublicKey = from.PublicKey },
		"address": func(from, n *clustermesh.Node) { n.Addresses = slices.Clone(from.Addresses) },
		"prefix":  func(from, n *clustermesh.Node) { n.Prefixes = slices.Clone(from.Prefixes) },
	} {
		s := clusterset()
		var before []plan.Had
		for _, p := range planFor(s).Desired.Peers {
			before = append(before, plan.Had{Key: p.Key, Underlay: p.Underlay, AllowedIPs: p.AllowedIPs})
		}
		from := s.Records.Get(victim).Content.Node
		edit(&s, "b", "n1", func(c *clustermesh.Content) { steal(from, c.Node) })
		for _, tc := range []struct {
			restarted bool
			heard     []clustermesh.Origin // of the two, in plans before
			learning  bool
		}{
			{}, {restarted: true},
			{restarted: true, heard: []clustermesh.Origin{{}}, learning: true},
			{restarted: true, heard: []clustermesh.Origin{thief}, learning: true},
			{restarted: true, heard: []clustermesh.Origin{thief, {}, victim}, learning: true},
			{restarted: true, heard: []clustermesh.Origin{{}}},
			{restarted: true, heard: []clustermesh.Origin{thief}},
			{restarted: true, heard: []clustermesh.Origin{{}, victim}},
			{restarted: true, heard: []clustermesh.Origin{thief, {}, victim}},
		} {
			p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
			if tc.restarted {
				p.Device = before
			}
			for _, o := range tc.heard {
				part := s
				for _, r := range []clustermesh.Origin{victim, thief} {
					if r != o {
						part.Records = part.Records.Without(r)
					}
				}
				p.Learning = tc.learning
				p.plan(part)
			}
			p.Learning = false
			for _, e := range p.plan(s).Mesh.Ends {
				want := tc.restarted && e.Origin == victim || e.Origin != victim && e.Origin != thief
				if got := e.Why == "" && len(e.AllowedIPs) > 0; got != want {
					t.Errorf("%s of %s, claimed by %s (%+v): a tunnel leads to %s: %t, %s", name, victim, thief, tc, e.Origin, got, e.Why)
				}
			}
		}
	}
}

// TestMovedMeanwhile: a node that moved while the daemon was down keeps its prefix when another node claims it
// later, because the first node proved that the key is its own.
func TestMovedMeanwhile(t *testing.T) {
	owner := origin("c", "n1")
	s := clusterset()
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
	var before []plan.Had
	for _, peer := range planFor(s).Desired.Peers {
		before = append(before, plan.Had{Key: peer.Key, Underlay: peer.Underlay, AllowedIPs: peer.AllowedIPs})
	}
	p.Device = before
	edit(&s, "c", "n1", func(c *clustermesh.Content) { c.Node.Addresses = []netip.Addr{netip.MustParseAddr("172.31.3.99")} })
	r := s.Records.Get(owner)
	r.KeyProven = true
	s.Records = s.Records.With(owner, r)
	p.plan(s)
	s = clustermesh.State{Records: s.Records, Contacts: s.Contacts}
	edit(&s, "b", "n1", func(c *clustermesh.Content) { c.Node.Prefixes = slices.Clone(r.Content.Node.Prefixes) })
	ends := p.plan(s).Mesh.Ends
	i := slices.IndexFunc(ends, func(e mesh.End) bool { return e.Origin == owner })
	if i < 0 {
		t.Fatalf("the plan has no end for %s", owner)
	}
	if e := ends[i]; e.Why != "" || !slices.Equal(e.AllowedIPs, r.Content.Node.Prefixes) {
		t.Errorf("%s moved, and had then the prefixes %v; now %v: %s", owner, r.Content.Node.Prefixes, e.AllowedIPs, e.Why)
	}
}
