package masquerade

import (
	"net/netip"
	"slices"

	"go4.org/netipx"

	"strait.io/strait/datapath"
)

// content is what tells one table of strait's from another.
type content struct {
	// based: the chain hangs where it should.
	based bool
	// rules are the comments of the rules, in order. A comment names all that its rule depends on but the sets.
	rules []string
	// pods are the elements of the sets, sorted.
	pods []netipx.IPRange
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
	c := content{based: true, pods: ranges(want.Prefixes), want: wanted{device, want.Node}}
	for _, r := range c.ruleset() {
		c.rules = append(c.rules, r.comment)
	}
	return c
}

// ranges turns prefixes into sorted ranges that neither overlap nor touch, which sets would not accept or give
// back in another form.
func ranges(prefixes []netip.Prefix) []netipx.IPRange {
	var b netipx.IPSetBuilder
	for _, p := range prefixes {
		b.AddPrefix(p)
	}
	set, _ := b.IPSet() // the error names invalid prefixes, which no plan has; the set is without them
	return set.Ranges()
}
