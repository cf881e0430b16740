package netfilter

import (
	"net/netip"
	"slices"

	"go4.org/netipx"

	"strait.io/strait/datapath"
)

// content is what Reconcile and Watch compare to decide whether the table is as wanted.
type content struct {
	// based is true if all chains are on the right hooks with the right priorities, there are no others, and
	// the table is not dormant.
	based bool
	// rules are the comments of all chains' rules, in order. A comment names everything that its
	// rule depends on, except the sets.
	rules []string
	// pods are the elements of the sets, sorted.
	pods []netipx.IPRange
	want wanted
}

// wanted is the input of the rules. It is zero in a content that was read from the kernel.
type wanted struct {
	device string
	datapath.Sources
}

func (c content) equal(d content) bool {
	return c.based == d.based && slices.Equal(c.rules, d.rules) && slices.Equal(c.pods, d.pods)
}

func contentOf(device string, want datapath.Sources) content {
	c := content{based: true, pods: ranges(want.Prefixes), want: wanted{device, want}}
	for _, ch := range c.chains() {
		for _, r := range ch.rules {
			c.rules = append(c.rules, r.comment)
		}
	}
	return c
}

// ranges turns prefixes into sorted ranges that neither overlap nor touch. A set would refuse other
// ranges, or return them in another form.
func ranges(prefixes []netip.Prefix) []netipx.IPRange {
	var b netipx.IPSetBuilder
	for _, p := range prefixes {
		b.AddPrefix(p)
	}
	set, _ := b.IPSet() // the error is for invalid prefixes, which no plan has; the set omits them
	return set.Ranges()
}
