package hostile

import (
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/record"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
)

// attack is what an attacker says all at once, as it is in force at west.
type attack struct {
	records clustermesh.ByOrigin[clustermesh.Record]
	// is reports whether a node is the attacker's.
	is func(clustermesh.Origin) bool
}

// byEvil is an attack by the cluster evil, with its root, some of whose nodes it makes up.
func (c *Case) byEvil() attack {
	a := attack{clustermesh.ByOrigin[clustermesh.Record]{}, func(o clustermesh.Origin) bool { return o.Cluster == evil }}
	for range 1 + c.IntN(4) {
		o := clustermesh.Origin{Cluster: evil, Node: one(c, c.anyName(), "")}
		_, r := c.evilRecord(o)
		a.records = a.records.With(o, r)
	}
	return a
}

// byNode is an attack by node n2 of an honest cluster, whose root states only what it may.
func (c *Case) byNode(cluster clustermesh.ClusterName) attack {
	o := origin(cluster, 2)
	var others []authority.Holder
	for _, n := range []int{1, 3} {
		others = append(others, c.nodes[origin(cluster, n)].holder)
	}
	h := c.anyHolder(holder(cluster, 2))
	h.Stated = c.nodes[o].stated
	want := c.anyWant(cluster, h)
	s, _ := authority.Certify(want, c.known(cluster, h, others...), began)
	r := clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 2, Version: 1}}
	r.Content, r.Problems = record.Usable(o, c.anyContent(o, s))
	r = authority.Admit(c.self, c.pins[cluster], s, r)
	return attack{clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{o: r}), func(other clustermesh.Origin) bool { return other == o }}
}

// under is what west knows under an attack. One honest node may not have been heard for a while.
func (c *Case) under(a attack) clustermesh.State {
	s := c.state
	for o, r := range a.records.All() {
		s.Records = s.Records.With(o, r)
		if o.Node != "" {
			s.Contacts = s.Contacts.With(o, clustermesh.Alive)
		}
	}
	return s
}

// planEntry is plan with annotations that name the ClusterIPs to which another node is the entry.
func (c *Case) planEntry() error {
	c.entries = true
	return c.plan()
}

// plan has n1 of west plan before an attack, and under it.
func (c *Case) plan() error {
	_, past := plan.Plan(c.inputs(c.state), plan.Past{})
	return c.planAfter(past, nil)
}

// planAgain has n1 of west plan under an attack, with the tunnels of its daemon's last life.
func (c *Case) planAgain() error {
	var had []plan.Had
	for _, x := range c.base.Desired.Peers {
		had = append(had, plan.Had{Key: x.Key, Underlay: x.Underlay, AllowedIPs: x.AllowedIPs})
	}
	return c.planAfter(plan.Past{}, had)
}

// planNew has n1 of west plan under an attack when it knows nothing but what honest nodes proved: their keys,
// and where they are.
func (c *Case) planNew() error {
	w := *c.world
	w.state.Proven = clustermesh.ByOrigin[netip.AddrPort]{}
	for o, m := range w.nodes {
		w.state.Proven = w.state.Proven.With(o, netip.AddrPortFrom(m.stated.Addresses[0], 7946))
	}
	c.world = &w
	return c.planAfter(plan.Past{}, nil)
}

// planAfter has n1 of west plan under an attack.
func (c *Case) planAfter(past plan.Past, device []plan.Had) error {
	var a attack
	switch c.IntN(3) {
	case 0:
		a = c.byEvil()
	case 1:
		a = c.byNode(east)
	case 2:
		a = c.byNode(west)
	}
	in := c.inputs(c.under(a))
	in.Device = device
	now, _ := plan.Plan(in, past)
	err := c.kept(a, now)
	if err != nil {
		err = fmt.Errorf("%w; attack %+v", err, a.records)
	}
	return err
}

// kept returns what a plan no longer has of what honest nodes and clusters had.
func (c *Case) kept(a attack, now plan.Result) error {
	honest := func(r plan.Result) []datapath.Peer {
		return slices.DeleteFunc(slices.Clone(r.Desired.Peers), func(p datapath.Peer) bool { return a.is(parse(p.Name)) })
	}
	if got, want := fmt.Sprint(honest(now)), fmt.Sprint(honest(c.base)); got != want {
		return fmt.Errorf("peers %s, were %s", got, want)
	}
	if got, want := fmt.Sprint(now.Desired.Sources.Prefixes, now.Desired.Sources.Node), fmt.Sprint(c.base.Desired.Sources.Prefixes, c.base.Desired.Sources.Node); got != want {
		return fmt.Errorf("sources %s, were %s", got, want)
	}
	for _, p := range now.Desired.Peers {
		for _, q := range p.AllowedIPs {
			if a.is(parse(p.Name)) && slices.ContainsFunc(c.theirs(a), q.Overlaps) {
				return fmt.Errorf("peer %s is allowed %s", p.Name, q)
			}
		}
	}
	if err := distinct(now.Desired.Peers); err != nil {
		return err
	}
	return c.keptServices(a, now)
}

// distinct returns what two peers have.
func distinct(peers []datapath.Peer) error {
	seen := map[any]string{}
	for _, p := range peers {
		all := []any{p.Key, p.Underlay}
		for _, q := range p.AllowedIPs {
			all = append(all, q)
		}
		for _, x := range all {
			if other, taken := seen[x]; taken {
				return fmt.Errorf("peers %s and %s both have %v", other, p.Name, x)
			}
			seen[x] = p.Name
		}
	}
	return nil
}

func parse(name string) clustermesh.Origin {
	for _, c := range clusters {
		if node, ok := cut(name, string(c)+"/"); ok {
			return clustermesh.Origin{Cluster: c, Node: clustermesh.NodeName(node)}
		}
	}
	return clustermesh.Origin{}
}

func cut(s, before string) (string, bool) {
	if len(s) < len(before) || s[:len(before)] != before {
		return s, false
	}
	return s[len(before):], true
}

// theirs are the ranges of all that is not the attacker's.
func (c *Case) theirs(a attack) (out []netip.Prefix) {
	for o, m := range c.nodes {
		if !a.is(o) {
			out = append(out, m.stated.Prefixes...)
		}
	}
	return append(out, c.self.Own...)
}

// keptServices compares the Services that the attacker's cluster may not share.
func (c *Case) keptServices(a attack, now plan.Result) error {
	have := map[string]datapath.Frontend{}
	for _, f := range now.Desired.Frontends {
		have[fmt.Sprint(f.Addr)] = f
	}
	for _, i := range c.base.Imports {
		if open(i.Service) {
			continue
		}
		for _, f := range i.Frontends() {
			was := c.frontend(c.base, f)
			is, ok := have[fmt.Sprint(f.Addr)]
			if !ok {
				return fmt.Errorf("frontend %v of %s is gone", f.Addr, i.Service)
			}
			if err := c.keptBackends(a, was, is); err != nil {
				return fmt.Errorf("frontend %v of %s: %w", f.Addr, i.Service, err)
			}
		}
	}
	return nil
}

func (c *Case) frontend(r plan.Result, f plan.Frontend) datapath.Frontend {
	i := slices.IndexFunc(r.Desired.Frontends, func(g datapath.Frontend) bool { return g.Addr == f.Addr })
	return r.Desired.Frontends[i]
}

// keptBackends wants every honest backend that was there, and no other than the attacker's own pods: a
// node may lie about those.
func (c *Case) keptBackends(a attack, was, is datapath.Frontend) error {
	owned := func(ip netip.Addr) bool {
		for o, m := range c.nodes {
			if !a.is(o) && (in(m.stated.Prefixes, ip) || slices.Contains(m.stated.Addresses, ip)) {
				return true
			}
		}
		return false
	}
	for _, b := range was.Backends {
		if owned(b.IP) && !slices.ContainsFunc(is.Backends, func(x datapath.Backend) bool { return x.AddrPort() == b.AddrPort() }) {
			return fmt.Errorf("backend %v is gone", b)
		}
	}
	for _, b := range is.Backends {
		if owned(b.IP) && !slices.ContainsFunc(was.Backends, func(x datapath.Backend) bool { return x.AddrPort() == b.AddrPort() }) {
			return fmt.Errorf("backend %v is new, and it is an honest node's", b)
		}
	}
	return nil
}
