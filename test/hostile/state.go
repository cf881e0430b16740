package hostile

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

func within(ranges []netip.Prefix, p netip.Prefix) bool {
	return slices.ContainsFunc(ranges, func(q netip.Prefix) bool { return q.Bits() <= p.Bits() && q.Contains(p.Addr()) })
}

func in(ranges []netip.Prefix, a netip.Addr) bool {
	return within(ranges, netip.PrefixFrom(a, a.BitLen()))
}

// town is the nodes of east as its signer knows them: three with a pod CIDR, one whose network gave it
// another range, and one that is the entry to ClusterIPs.
func (w *world) town() ([]authority.Holder, error) {
	var out []authority.Holder
	annotated, entry := holder(east, 4), holder(east, 5)
	annotated.Annotated, annotated.Addresses = []netip.Prefix{prefix("10.2.11.0/24")}, []netip.Addr{addr("10.2.8.1")}
	entry.Entry = []netip.Prefix{entryIPs}
	for _, h := range []authority.Holder{holder(east, 1), holder(east, 3), annotated, entry} {
		s, left := authority.Certify(wanted(east, h), w.known(east, h, out...), began)
		if len(left) > 0 || !s.Matches(wanted(east, h)) || s.KeyProven == unproven(east, h.Name) {
			return nil, fmt.Errorf("an honest node alone is stated as %+v: %v", s, left)
		}
		h.Stated = s
		out = append(out, h)
	}
	return out, nil
}

// certifyEntry is certify with annotations that name the ClusterIPs to which another node is the entry.
func (c *Case) certifyEntry() error {
	c.entries = true
	return c.certify()
}

// certify has one node of east, whose kubelet an attacker has, claim things again and again.
func (c *Case) certify() error {
	others := c.others
	mine, name := holder(east, 2), one[clustermesh.NodeName](c, "n2", "a", "z")
	if c.chance(4) { // the version before states any key
		mine.Stated.WireGuard = c.nodes[one(c, c.honestNodes()...)].stated.WireGuard
	}
	for range 1 + c.IntN(3) {
		stated := mine.Stated
		mine = c.anyHolder(holder(east, 2))
		mine.Name, mine.Stated = name, stated
		s, left := authority.Certify(c.anyWant(east, mine), c.known(east, mine, others...), began)
		if err := errors.Join(c.stated(s, mine, others), c.statedKey(s, others)); err != nil {
			return fmt.Errorf("%w, of %+v", err, mine)
		}
		if len(left) > 8 {
			return fmt.Errorf("%d Problems of one node", len(left))
		}
		mine.Stated = s
		for i, h := range others {
			rest := append(slices.Delete(slices.Clone(others), i, i+1), mine)
			if again, left := authority.Certify(wanted(east, h), c.known(east, h, rest...), began); !again.Satisfies(h.Stated) {
				return fmt.Errorf("node %s gets %+v after node %+v: %v", h.Name, again, mine, left)
			}
		}
	}
	return nil
}

// stated returns what of a statement is another node's, or no node's of east.
func (c *Case) stated(s authority.Statement, mine authority.Holder, others []authority.Holder) error {
	if s.Locality != mine.Locality {
		return fmt.Errorf("it is stated in %v", s.Locality)
	}
	for _, a := range s.Addresses {
		if !slices.Contains(mine.Addresses, a) || !in(c.pins[east].Nodes, a) {
			return fmt.Errorf("address %s is stated", a)
		}
		for o, m := range c.nodes {
			if (o.Cluster != east || o.Node != "n2") && slices.Contains(m.stated.Addresses, a) {
				return fmt.Errorf("address %s of node %s is stated", a, o)
			}
		}
		for _, h := range others {
			if slices.Contains(h.Addresses, a) || in(h.Stated.Prefixes, a) {
				return fmt.Errorf("address %s of node %s is stated", a, h.Name)
			}
		}
	}
	for _, p := range s.Prefixes {
		if !within(c.pins[east].Pods, p) {
			return fmt.Errorf("prefix %s is stated", p)
		}
		for _, h := range others {
			for _, q := range h.Stated.Prefixes {
				// Several nodes can be the entry to the same ClusterIPs, where an annotation says so.
				shared := p.Masked() == q && within(h.Entry, q) && within(mine.Entry, p)
				if p.Overlaps(q) && !shared {
					return fmt.Errorf("prefix %s is stated, of which node %s has %s", p, h.Name, q)
				}
			}
			if slices.ContainsFunc(h.Addresses, p.Contains) {
				return fmt.Errorf("prefix %s is stated, in which node %s is", p, h.Name)
			}
		}
	}
	return nil
}

// newcomer has an attacker's node claim things before another node comes.
func (c *Case) newcomer() error {
	others := slices.Clip(c.others)
	mine := holder(east, 2)
	for range 1 + c.IntN(3) {
		stated := mine.Stated
		mine = c.anyHolder(holder(east, 2))
		mine.Stated = stated
		mine.Stated, _ = authority.Certify(c.anyWant(east, mine), c.known(east, mine, others...), began)
	}
	h := holder(east, 6+c.IntN(5))
	s, left := authority.Certify(wanted(east, h), c.known(east, h, append(others, mine)...), began)
	if !slices.Equal(s.Prefixes, h.PodCIDRs) || !s.KeyProven {
		return fmt.Errorf("node %s gets %v, its key proven %t, after node %+v: %v", h.Name, s.Prefixes, s.KeyProven, mine, left)
	}
	return nil
}

// errBroken is for what needs no more words.
var errBroken = errors.New("it is believed")

// seal has an attacker who has no root forge records of east.
func (c *Case) seal() error {
	n, other := c.nodes[origin(east, 1+c.IntN(3))], c.nodes[one(c, origin(evil, 1), origin(east, 1), origin(east, 2), origin(east, 3))]
	if n == other {
		other = c.nodes[origin(evil, 2)]
	}
	flip := func(b []byte) []byte {
		b = slices.Clone(b)
		b[c.IntN(len(b))] ^= 1 << c.IntN(8)
		return b
	}
	o, raw, proof := n.record.Origin, n.raw, n.seal
	switch c.IntN(9) {
	case 0:
		raw = flip(raw)
	case 1:
		proof = flip(proof)
		if s, err := authority.Verify(c.pins, o, raw, proof, c.open); err == nil && !s.Matches(n.stated) {
			return errBroken
		}
		return nil // nothing that counts was changed
	case 2: // the seal of another record
		proof = other.seal
	case 3: // another node in this one's name, with either statement
		proof = authority.Seal(other.key, raw, one(c, n.statement, other.statement))
	case 4: // a node in its cluster's name
		o = clustermesh.Origin{Cluster: east}
		proof = authority.Seal(n.key, raw, n.statement)
	case 5: // a cluster that is not pinned, or another that is
		o.Cluster = one(c, "mallory", west, evil)
		proof = authority.Seal(c.roots[east], raw, n.statement)
	case 6: // another cluster's root in this cluster's name
		o = one(c, o, clustermesh.Origin{Cluster: east})
		s := n.stated
		s.Key = other.stated.Key
		statement, err := s.Sign(c.roots[evil])
		if err != nil {
			return err
		}
		proof = authority.Seal(one(c, other.key, c.roots[evil]), raw, statement)
	case 7: // nothing
		proof = nil
	case 8: // bytes that mean nothing
		proof = make([]byte, c.IntN(200))
		for i := range proof {
			proof[i] = byte(c.IntN(256))
		}
	}
	if _, err := authority.Verify(c.pins, o, raw, proof, c.open); err == nil {
		return errBroken
	}
	return nil
}
