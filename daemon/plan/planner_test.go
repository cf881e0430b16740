package plan_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"weak"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// seenOf is all that a plan says, worked out and written down.
func seenOf(r plan.Result) string {
	out := fmt.Sprintf("%+v %+v %+v\n", r.Desired, r.Allocations, r.Problems)
	for _, i := range r.Imports {
		out += fmt.Sprintf("%+v %+v %+v %+v %+v\n", *i.Import, i.IPs, i.Frontends(), i.Endpoints(), i.ForCluster())
	}
	for _, g := range r.Globals {
		out += fmt.Sprintf("%+v %+v %+v %+v\n", *g.Global, g.Sharers, g.Frontends(), g.Endpoints())
	}
	return out
}

func drawService(rt *rapid.T) clustermesh.ServiceName {
	return clustermesh.ServiceName{Namespace: "default", Name: rapid.SampledFrom([]string{"s1", "s2"}).Draw(rt, "service")}
}

func drawIP(rt *rapid.T, a, b byte) netip.Addr {
	if rapid.IntRange(0, 9).Draw(rt, "six") == 0 {
		return netip.AddrFrom16([16]byte{0xfd, 15: rapid.Byte().Draw(rt, "low") & 3})
	}
	return netip.AddrFrom4([4]byte{a, b, 0, rapid.Byte().Draw(rt, "low") & 3})
}

func drawPort(rt *rapid.T) clustermesh.ServicePort {
	return clustermesh.ServicePort{Name: rapid.SampledFrom([]string{"http", "dns"}).Draw(rt, "port"), Proto: l4.TCP, Port: rapid.SampledFrom([]uint16{80, 81}).Draw(rt, "number")}
}

// mortal is the node that others may call silent.
var mortal = clustermesh.Origin{Cluster: "b", Node: "n1"}

// drawContent is what an origin may come to say; c numbers its cluster.
func drawContent(rt *rapid.T, o clustermesh.Origin, c byte) (out clustermesh.Content) {
	for range rapid.IntRange(0, 4).Draw(rt, "endpoints") {
		out.Endpoints = append(out.Endpoints, clustermesh.Endpoint{
			Service: drawService(rt), Addr: drawIP(rt, 10, c), Node: o.Node,
			Zone:  rapid.SampledFrom([]string{"", "z1"}).Draw(rt, "zone"),
			Ready: rapid.IntRange(0, 3).Draw(rt, "ready") > 0, Serving: rapid.Bool().Draw(rt, "serving"), Terminating: rapid.IntRange(0, 3).Draw(rt, "terminating") == 0,
			Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}, {Name: "dns", Proto: l4.TCP, Port: 8053}},
		})
	}
	if o.Node != "" {
		out.Node = drawNode(rt, o.Node)
		out.Node.Locality = clustermesh.Locality{Zone: rapid.SampledFrom([]string{"z1", "z2"}).Draw(rt, "zone of the node")}
		if o != mortal && rapid.Bool().Draw(rt, "claims") {
			out.Silent = []clustermesh.Silence{{Origin: mortal, Epoch: 9}}
		}
		return out
	}
	if len(out.Endpoints) > 0 { // one that names a node after all
		out.Endpoints[0].Node = "n2"
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"s1", "s2"}), 0, 2, rapid.ID).Draw(rt, "exports") {
		e := clustermesh.Export{Service: clustermesh.ServiceName{Namespace: "default", Name: name}, Type: clustermesh.ClusterSetIP,
			Ports: []clustermesh.ServicePort{drawPort(rt)}, Created: int64(rapid.IntRange(0, 2).Draw(rt, "created")),
			InternalTrafficPolicy: rapid.SampledFrom([]string{"Cluster", "Cluster", "Local"}).Draw(rt, "policy")}
		if rapid.Bool().Draw(rt, "says its families") {
			e.Families, e.FamiliesDeclared = []clustermesh.Family{clustermesh.IPv4}, rapid.Bool().Draw(rt, "by itself")
		}
		if rapid.IntRange(0, 4).Draw(rt, "headless") == 0 {
			e.Type = clustermesh.Headless
		}
		out.Exports = append(out.Exports, e)
	}
	for range rapid.IntRange(0, 3).Draw(rt, "allocations") {
		out.Allocations = append(out.Allocations, clustermesh.Allocation{Service: drawService(rt), IP: drawIP(rt, 241, 0)})
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"s1", "s2"}), 0, 2, rapid.ID).Draw(rt, "globals") {
		out.Globals = append(out.Globals, clustermesh.Global{Service: clustermesh.ServiceName{Namespace: "default", Name: name},
			Ports: []clustermesh.ServicePort{drawPort(rt)}, IPs: []netip.Addr{drawIP(rt, 10, 96)}, Shared: rapid.Bool().Draw(rt, "shared"),
			Affinity: rapid.SampledFrom([]clustermesh.GlobalAffinity{"", clustermesh.AffinityLocal, clustermesh.AffinityNone}).Draw(rt, "affinity")})
	}
	return out
}

func drawOrigin(rt *rapid.T) clustermesh.Origin {
	return clustermesh.Origin{
		Cluster: rapid.SampledFrom([]clustermesh.ClusterName{"a", "b", "c"}).Draw(rt, "cluster"),
		Node:    rapid.SampledFrom([]clustermesh.NodeName{"", "n1", "n2"}).Draw(rt, "node"),
	}
}

// TestPlannerForgetsNothing: whatever was planned before, a plan is the same as one without a past. Keys and
// underlay addresses are each node's own here: who keeps those that are claimed twice depends on the
// plans before.
func TestPlannerForgetsNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		self := plan.Self{Cluster: "a", Node: "n1"}
		c := plan.Config{Mesh: true}
		if rapid.Bool().Draw(rt, "own range") {
			c.CIDRs = []netip.Prefix{cidr}
		}
		p := newSeries(self, c)
		s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}, Contacts: clustermesh.ByOrigin[clustermesh.Contact]{}}
		draw := func(o clustermesh.Origin, version int) clustermesh.Record {
			c := drawContent(rt, o, o.Cluster[0])
			if c.Node != nil {
				c.Node.PublicKey = key.Public{o.Cluster[0], o.Node[1]}
				c.Node.Addresses = []netip.Addr{netip.AddrFrom4([4]byte{172, 31, o.Cluster[0], o.Node[1]})}
				for i, p := range c.Node.Prefixes { // who had a contested one keeps it, so that a new plan differs
					c.Node.Prefixes[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, o.Cluster[0], o.Node[1], byte(p.Bits())}), 32)
				}
			}
			r := clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: uint64(version)}, Content: c}
			if rapid.IntRange(0, 3).Draw(rt, "has problems") == 0 {
				r.Problems = []clustermesh.Problem{{Object: o.String(), Message: "something is left out"}}
			}
			return r
		}
		for _, cluster := range []clustermesh.ClusterName{"a", "b", "c"} {
			for _, node := range []clustermesh.NodeName{"", "n1", "n2"} {
				o := clustermesh.Origin{Cluster: cluster, Node: node}
				s.Records = s.Records.With(o, draw(o, 0))
				s.Contacts = s.Contacts.With(o, clustermesh.Alive)
			}
		}
		s.Contacts = s.Contacts.With(mortal, clustermesh.Silent)
		var last plan.Result
		var was string
		for step := range rapid.IntRange(1, 20).Draw(rt, "steps") {
			s = clustermesh.State{Records: s.Records, Contacts: s.Contacts}
			o := drawOrigin(rt)
			switch rapid.IntRange(0, 8).Draw(rt, "what") {
			case 0:
				s.Records = s.Records.Without(o)
			case 1, 2:
				s.Contacts = s.Contacts.With(o, rapid.SampledFrom([]clustermesh.Contact{clustermesh.Held, clustermesh.Silent, clustermesh.Quiet, clustermesh.Alive}).Draw(rt, "contact"))
			case 3: // the same but for the addresses
				r := s.Records.Get(o)
				r.Content.Allocations = draw(o, step).Content.Allocations
				s.Records = s.Records.With(o, r)
			case 4: // the same again, in other memory
				r := s.Records.Get(o)
				r.Content.Endpoints = append([]clustermesh.Endpoint(nil), r.Content.Endpoints...)
				r.Content.Exports = append([]clustermesh.Export(nil), r.Content.Exports...)
				s.Records = s.Records.With(o, r)
			case 5: // a record with pods and without its node
				r := s.Records.Get(mortal)
				r.Origin, r.Content.Node = mortal, nil
				s.Records = s.Records.With(mortal, r)
			default:
				s.Records = s.Records.With(o, draw(o, step))
			}
			next := p.plan(s)
			if step > 0 && seenOf(last) != was {
				rt.Fatalf("the plan before is not what it was:\n%s\n%s", seenOf(last), was)
			}
			last, was = next, seenOf(next)
			if want := seenOf(once(s, self, c)); was != want {
				rt.Fatalf("step %d: planned\n%s\nwant\n%s", step, was, want)
			}
		}
	})
}

// TestPlannerKeepsWhatHasNotChanged: an import is the same value as before unless something of it changed.
func TestPlannerKeepsWhatHasNotChanged(t *testing.T) {
	s := clusterset()
	edit(&s, "a", "", func(c *clustermesh.Content) {
		e := c.Exports[0]
		e.Service.Name = "other"
		c.Exports = append(c.Exports, e)
	})
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}})
	first := p.plan(s)
	edit(&s, "a", "n1", unready)
	second := p.plan(s)
	if first.Imports[0] != second.Imports[0] || first.Imports[0].Service.Name != "other" {
		t.Error("an import whose endpoints are as they were was planned again")
	}
	if first.Imports[1].Version() == second.Imports[1].Version() {
		t.Error("an import with a pod that is not ready any more has the version that it had")
	}
	edit(&s, "a", "n1", func(*clustermesh.Content) {})
	if third := p.plan(s); third.Imports[1].Version() != second.Imports[1].Version() {
		t.Error("a new record that says the same is a new version")
	}
}

// TestPlannerKeepsTunnels: peers and routes are the same memory as before unless something of a node changed.
func TestPlannerKeepsTunnels(t *testing.T) {
	s := clusterset()
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{Mesh: true})
	next := func(change func(*clustermesh.Content)) datapath.Desired {
		edit(&s, "b", "n1", func(c *clustermesh.Content) {
			node := *c.Node // each record is decoded into memory of its own
			c.Node = &node
			change(c)
		})
		return p.plan(s).Desired
	}
	first := next(func(*clustermesh.Content) {})
	if len(first.Peers) == 0 || len(first.Routes) == 0 {
		t.Fatalf("no peers or no routes: %+v", first)
	}
	if again := next(unready); &again.Peers[0] != &first.Peers[0] || &again.Routes[0] != &first.Routes[0] {
		t.Error("peers or routes were made again, though no node changed")
	}
	port := func(c *clustermesh.Content) { c.Node.WireGuardPort++ }
	if moved := next(port); slices.EqualFunc(moved.Peers, first.Peers, datapath.Peer.Equal) {
		t.Errorf("a node's port changed, but the peers did not: %+v", moved.Peers)
	}
}

// TestPlannerSeesDeath: of what is known of a machine, only its death changes here.
func TestPlannerSeesDeath(t *testing.T) {
	s := clusterset()
	edit(&s, "a", "", func(c *clustermesh.Content) { c.Exports = nil })
	s.Contacts = s.Contacts.With(mortal, clustermesh.Silent)
	for _, other := range [][2]string{{"b", "n2"}, {"c", "n1"}, {"c", "n2"}} {
		edit(&s, other[0], other[1], unready)
	}
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{})
	if got := backends(p.plan(s)); got != "10.2.1.10:8080" {
		t.Fatalf("backends %s, want the one that is silent, since no other is ready", got)
	}
	for _, witness := range [][2]string{{"b", "n2"}, {"c", "n1"}} {
		o := clustermesh.Origin{Cluster: clustermesh.ClusterName(witness[0]), Node: clustermesh.NodeName(witness[1])}
		r := s.Records.Get(o)
		r.Content.Silent = []clustermesh.Silence{{Origin: mortal, Epoch: 1}}
		s.Records = s.Records.With(o, r)
	}
	r := p.plan(s)
	if got := backends(r); got != "" {
		t.Errorf("backends %s of a dead machine", got)
	}
	for _, e := range r.Imports[0].Endpoints() {
		if e.Dead != (e.Addr.String() == "10.2.1.10") {
			t.Errorf("endpoint %s: dead %t", e.Addr, e.Dead)
		}
	}
}

// TestPlannerLetsGo: a record that another has replaced is not kept, though the other says the same.
func TestPlannerLetsGo(t *testing.T) {
	s := clusterset()
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}})
	p.plan(s)
	old := weak.Make(&s.Records.Get(clustermesh.Origin{Cluster: "b", Node: "n1"}).Content.Endpoints[0])
	edit(&s, "b", "n1", func(*clustermesh.Content) {})
	r := p.plan(s)
	runtime.GC()
	if old.Value() != nil {
		t.Error("the record that was replaced is still in memory")
	}
	runtime.KeepAlive(p)
	runtime.KeepAlive(r)
}

// TestPlannerHeap bounds what a plan of 10,000 services × 10 endpoints and its Past keep besides the records, as a
// multiple of the frontends alone. A copy of each endpoint would be five times the frontends more.
func TestPlannerHeap(t *testing.T) {
	s := large()
	planner := func() *series {
		return newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
	}
	bare := testutil.Heap(func() any {
		var frontends []datapath.Frontend
		for _, f := range planner().plan(s).Desired.Frontends {
			f.Backends = slices.Clone(f.Backends)
			frontends = append(frontends, f)
		}
		return frontends
	})
	all := testutil.Heap(func() any {
		p := planner()
		return []any{p, p.plan(s)}
	})
	t.Logf("%.1f MB, of which the frontends with their backends take %.1f: %.2f times", all/1e6, bare/1e6, all/bare)
	if all > 4.3*bare {
		t.Error("more than 4.3 times the frontends")
	}
	runtime.KeepAlive(s)
}
