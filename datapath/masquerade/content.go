package masquerade

import (
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/datapath"
)

// content is what tells one table of strait's from another.
type content struct {
	// based: the chain hangs where it should.
	based bool
	// rules are the comments of the rules, in order. A comment names all that its rule depends on but the sets.
	rules []string
	// pods are the elements of the sets, sorted.
	pods []span
	want wanted
}

// wanted is what rules are made of; the zero value for a table that was read.
type wanted struct {
	device string
	node   netip.Addr
}

func (c content) equal(d content) bool {
	return c.based == d.based && slices.Equal(c.rules, d.rules) && slices.Equal(c.pods, d.pods)
}

func contentOf(device string, want datapath.Sources) content {
	c := content{based: true, pods: spans(want.Prefixes), want: wanted{device, want.Node}}
	for _, r := range c.ruleset() {
		c.rules = append(c.rules, r.comment)
	}
	return c
}

// span is a range of addresses as interval sets hold it. To is the first address after it; invalid where the
// span goes to the end of its family.
type span struct{ from, to netip.Addr }

func (s span) String() string { return fmt.Sprintf("%s–%s", s.from, s.to) }

// spans turns prefixes into sorted ranges that neither overlap nor touch, which sets would not accept or give
// back in another form.
func spans(prefixes []netip.Prefix) (out []span) {
	for _, p := range prefixes {
		out = append(out, span{p.Masked().Addr(), after(p)})
	}
	slices.SortFunc(out, func(a, b span) int { return a.from.Compare(b.from) })
	merged := out[:0]
	for _, s := range out {
		if n := len(merged) - 1; n >= 0 && merged[n].from.BitLen() == s.from.BitLen() && merged[n].reaches(s.from) {
			if merged[n].to.IsValid() && (!s.to.IsValid() || merged[n].to.Less(s.to)) {
				merged[n].to = s.to
			}
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

func (s span) reaches(a netip.Addr) bool { return !s.to.IsValid() || !s.to.Less(a) }

// after is the first address behind a prefix; invalid behind the last.
func after(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	last, _ := netip.AddrFromSlice(b) // as long as it was
	return last.Next()
}
