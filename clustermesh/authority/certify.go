package authority

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// A node itself writes much of what its cluster knows of it: its kubelet sets the addresses and the
// annotations of its Node. So a root certifies only what Kubernetes or an operator attests, and what no
// other node has. If two nodes claim the same, a pod CIDR takes precedence over an annotation, and an
// annotation over a node's mere claim. Between equal claims, the node whose statement has it keeps it.
// Names decide nothing. A WireGuard key belongs to the node that proves it.

// Holder is a node as its cluster's objects describe it, with its statement.
type Holder struct {
	Name     clustermesh.NodeName
	Locality clustermesh.Locality
	// Addresses are those of the Node's status.
	Addresses []netip.Addr
	// PodCIDRs are the ranges that Kubernetes gave the node. Annotated are those that its annotation names
	// instead, and Entry the ranges of ClusterIPs that it is the entry to.
	PodCIDRs, Annotated, Entry []netip.Prefix
	// Stated is the statement in force; zero if there is none.
	Stated Statement
}

// Objects describe the nodes of a cluster, as its API server has them.
type Objects struct {
	Nodes []Holder
	// All is true if Nodes lists every node of the cluster.
	All bool
	// ClusterIPs are ranges of the ClusterIPs of its Services.
	ClusterIPs []netip.Prefix
}

// Known is what a signer bases a node's statement on.
type Known struct {
	// Node is the node itself. Others are the other nodes of its cluster.
	Node   Holder
	Others []Holder
	// Pins are those of the cluster, with its own.
	Pins Pins
	// Foreign are the statements in force about nodes of other clusters.
	Foreign []Statement
	// ClusterSetIPs and ClusterIPs are ranges that no node has.
	ClusterSetIPs, ClusterIPs []netip.Prefix
}

// maxRefusals bounds the Problems of one statement.
const maxRefusals = 8

// Certify returns the part of a requested statement that the cluster can sign, valid from now on, and a
// Problem for each reason to leave something out. Certify never changes its arguments.
func Certify(want Statement, known Known, now time.Time) (Statement, []clustermesh.Problem) {
	c := &certifier{Known: known, about: want.Origin()}
	c.own = known.Pins[want.Cluster]
	want = c.wireGuard(want)
	want.Addresses = kept(want.Addresses, c.address)
	want.Prefixes = c.prefixes(want.Prefixes)
	want.Locality = known.Node.Locality
	return want.Signed(now), c.refused()
}

// certifier is one call of Certify.
type certifier struct {
	Known
	about   clustermesh.Origin
	own     Pin
	reasons []refusedPart
}

// refusedPart is the first part that was left out for one reason.
type refusedPart struct {
	code       problem.Code
	field, key string
	message    string
	try        string
	more       int
}

func (c *certifier) refuse(p refusedPart) bool {
	i := slices.IndexFunc(c.reasons, func(r refusedPart) bool { return r.field == p.field && r.key == p.key })
	if i >= 0 {
		c.reasons[i].more++
	} else if len(c.reasons) < maxRefusals {
		c.reasons = append(c.reasons, p)
	}
	return false
}

func (c *certifier) refused() (out []clustermesh.Problem) {
	for _, r := range c.reasons {
		if r.more > 0 {
			r.message += fmt.Sprintf(", with %d more of them", r.more)
		}
		out = append(out, c.about.Ref().Problem(clustermesh.Problem{
			Code: r.code, Field: r.field, Message: r.message + ": its cluster does not state it", Try: r.try,
		}))
	}
	return out
}

// taken refuses an address or prefix that another node has.
func (c *certifier) taken(field string, what fmt.Stringer, how string, by clustermesh.Origin) bool {
	return c.refuse(refusedPart{
		code: problem.ClaimContested, field: field, key: by.String(),
		message: fmt.Sprintf("it claims %s, and %s node %s, which keeps it", what, how, by),
		try:     "correct the Node that is wrong: its annotations strait.io/prefixes and strait.io/cluster-ips, its podCIDRs and its status.addresses",
	})
}

// outside refuses an address or prefix that no node of the cluster can have.
func (c *certifier) outside(field string, what fmt.Stringer, why string) bool {
	return c.refuse(refusedPart{
		code: problem.OutsideAuthority, field: field, key: "outside",
		message: fmt.Sprintf("it claims %s, %s", what, why),
		try:     "correct the Node; if it is right, change this cluster's own pin (authority.pinsFile)",
	})
}

func (c *certifier) node(name clustermesh.NodeName) clustermesh.Origin {
	return clustermesh.Origin{Cluster: c.about.Cluster, Node: name}
}

// address reports whether the node can have an address on the underlay.
func (c *certifier) address(a netip.Addr) bool {
	const field = "addresses"
	switch err := clustermesh.CheckHost(a); {
	case err != nil:
		return c.outside(field, a, "and "+err.Error())
	case !slices.Contains(c.Node.Addresses, a):
		return c.outside(field, a, "which its Node object does not have")
	case clustermesh.IsTunnelAddr(a) || contains(c.ClusterSetIPs, a):
		return c.outside(field, a, "which is no machine's: the range is strait's own")
	}
	if why := c.foreign(a); why != "" {
		return c.outside(field, a, why)
	}
	for i := range c.Others {
		if how := c.addressOf(&c.Others[i], a); how != "" {
			return c.taken(field, a, how, c.node(c.Others[i].Name))
		}
	}
	if c.stated(a) {
		return true
	}
	for i := range c.Foreign {
		f := &c.Foreign[i]
		if slices.Contains(f.Addresses, a) && contains(c.Pins[f.Cluster].Nodes, a) {
			return c.taken(field, a, "that is an address of", f.Origin())
		}
	}
	return true
}

// stated reports whether the node has an address in its statement.
func (c *certifier) stated(a netip.Addr) bool { return slices.Contains(c.Node.Stated.Addresses, a) }

// foreign returns why an address cannot be that of a machine of this cluster; empty if it can.
func (c *certifier) foreign(a netip.Addr) string {
	switch {
	case contains(c.own.Nodes, a):
		return ""
	case len(c.own.Nodes) > 0:
		return fmt.Sprintf("which is not in the pinned node ranges of cluster %s %v", c.about.Cluster, c.own.Nodes)
	case contains(c.ClusterIPs, a):
		return "which is in the range of its cluster's ClusterIPs"
	}
	for _, p := range c.Pins.sorted() {
		if p.Cluster != c.about.Cluster && (contains(p.Pods, a) || contains(p.Nodes, a)) {
			return fmt.Sprintf("which is in the pinned ranges of cluster %s", p.Cluster)
		}
	}
	return ""
}

// addressOf describes how another node has an address; empty if it does not, or if this one had it first.
func (c *certifier) addressOf(o *Holder, a netip.Addr) string {
	switch {
	case contains(o.podCIDRs(), a):
		return "that is in the pod CIDR of"
	case c.stated(a):
		return ""
	case contains(o.Stated.Prefixes, a):
		return "that is in the prefixes of"
	case slices.Contains(o.Stated.Addresses, a), slices.Contains(o.Addresses, a):
		return "that is an address of"
	}
	return ""
}

// prefixes returns those that the node can have.
func (c *certifier) prefixes(want []netip.Prefix) []netip.Prefix {
	want = kept(want, c.inRange)
	near := c.near(want)
	return kept(want, func(p netip.Prefix) bool {
		for _, i := range near {
			o := &c.Others[i]
			if how := c.prefixOf(o, p); how != "" {
				return c.taken("prefixes", p, how, c.node(o.Name))
			}
		}
		return true
	})
}

// inRange reports whether any node of the cluster could have a prefix for its pods.
func (c *certifier) inRange(p netip.Prefix) bool {
	const field = "prefixes"
	if err := clustermesh.CheckPrefix(p); err != nil {
		return c.outside(field, p, "and "+err.Error())
	}
	if _, is := clustermesh.TunnelRange(p); is || overlaps(c.ClusterSetIPs, p) {
		return c.outside(field, p, "which is no pods': the range is strait's own")
	}
	attested, inside := covers(c.Node.PodCIDRs, p), covers(c.own.Pods, p)
	if !attested && !inside {
		return c.outside(field, p, fmt.Sprintf("which is neither in its podCIDRs nor in the pinned pod ranges of cluster %s %v", c.about.Cluster, c.own.Pods))
	}
	if attested && inside {
		return true
	}
	for _, q := range c.Pins.sorted() {
		if q.Cluster != c.about.Cluster && (overlaps(q.Pods, p) || !inside && overlaps(q.Nodes, p)) {
			return c.outside(field, p, fmt.Sprintf("which overlaps the pinned ranges of cluster %s", q.Cluster))
		}
	}
	return true
}

// near returns the other nodes that have a prefix or address that overlaps one of the prefixes. Each of
// 5,000 nodes can have 250 prefixes, and near looks at each only once.
func (c *certifier) near(want []netip.Prefix) (out []int) {
	s := newSpans(want)
	for i := range c.Others {
		o := &c.Others[i]
		if slices.ContainsFunc([][]netip.Prefix{o.PodCIDRs, o.Annotated, o.Entry, o.Stated.Prefixes}, func(ps []netip.Prefix) bool { return slices.ContainsFunc(ps, s.overlap) }) ||
			slices.ContainsFunc(o.Addresses, s.contain) || slices.ContainsFunc(o.Stated.Addresses, s.contain) {
			out = append(out, i)
		}
	}
	return out
}

// prefixOf describes how another node has a part of a prefix; empty if it does not, or if this node's claim
// takes precedence.
func (c *certifier) prefixOf(o *Holder, p netip.Prefix) string {
	for _, q := range o.holds() {
		if q.prefix.Overlaps(p) && c.yields(p, o, q) {
			return fmt.Sprintf("%s is in the %s of", q.prefix, q.rank)
		}
	}
	if c.Node.rank(p) == podCIDR || covers(c.Node.Stated.Prefixes, p) {
		return ""
	}
	for _, a := range slices.Concat(o.Stated.Addresses, o.Addresses) {
		if p.Contains(a) {
			return fmt.Sprintf("%s is an address of", a)
		}
	}
	return ""
}

// yields reports whether this node's claim of a prefix yields to an overlapping one of another node.
func (c *certifier) yields(p netip.Prefix, o *Holder, q hold) bool {
	mine, had := c.Node.rank(p), covers(c.Node.Stated.Prefixes, p)
	if q.stated && slices.Contains(o.Entry, q.prefix) && !covers(c.Node.Entry, p) {
		// This node can have been a standby entry to that range. That gives it no part of it for pods.
		had = false
	}
	if mine == podCIDR && c.Node.elsewhere(p) {
		mine = annotated
	}
	switch {
	case covers(c.Node.Entry, p) && covers(o.Entry, q.prefix):
		// Several nodes can be the entry to one range. A claim of a part would take that part from the others.
		return q.prefix.Bits() != p.Bits() && (!had || q.stated && q.prefix.Bits() < p.Bits())
	case mine > q.rank:
		return q.stated && !had && mine != podCIDR
	case mine == q.rank:
		return !had && (q.stated || mine == podCIDR)
	case q.rank == podCIDR:
		return !had || mine != annotated || !o.elsewhere(q.prefix)
	}
	return q.stated || !had
}

// rank is how well a claim of a prefix is attested.
type rank int

const (
	claimed   rank = iota // by the node alone
	annotated             // by an annotation of its Node, which its kubelet can write too
	podCIDR               // by Kubernetes
)

func (r rank) String() string { return [...]string{"statement", "annotations", "podCIDRs"}[r] }

// hold is a prefix that a node has, and whether it was stated.
type hold struct {
	prefix netip.Prefix
	rank   rank
	stated bool
}

// podCIDRs are those that count: an annotation replaces them.
func (h *Holder) podCIDRs() []netip.Prefix {
	if len(h.Annotated) > 0 {
		return nil
	}
	return h.PodCIDRs
}

func (h *Holder) rank(p netip.Prefix) rank {
	switch {
	case covers(h.podCIDRs(), p):
		return podCIDR
	case covers(h.Annotated, p), covers(h.Entry, p):
		return annotated
	}
	return claimed
}

// elsewhere reports whether the node's statement has its pods in other ranges than this one of its pod
// CIDRs: the CNI of such a cluster allocates addresses by itself.
func (h *Holder) elsewhere(p netip.Prefix) bool {
	return len(h.Stated.Prefixes) > 0 && !covers(h.Stated.Prefixes, p)
}

func (h *Holder) holds() (out []hold) {
	for _, p := range h.podCIDRs() {
		out = append(out, hold{p, podCIDR, covers(h.Stated.Prefixes, p)})
	}
	for _, p := range slices.Concat(h.Annotated, h.Entry) {
		out = append(out, hold{p, annotated, false})
	}
	for _, p := range h.Stated.Prefixes {
		out = append(out, hold{p, h.rank(p), true})
	}
	return out
}

// spans finds what overlaps a list of prefixes: those that lie in no other of them, sorted.
type spans []netip.Prefix

func newSpans(ps []netip.Prefix) (out spans) {
	sorted := slices.Clone(ps)
	for i := range sorted {
		sorted[i] = sorted[i].Masked()
	}
	slices.SortFunc(sorted, netip.Prefix.Compare)
	for _, p := range sorted {
		if len(out) == 0 || !out[len(out)-1].Overlaps(p) {
			out = append(out, p)
		}
	}
	return out
}

func (s spans) overlap(p netip.Prefix) bool {
	i, found := slices.BinarySearchFunc(s, p.Masked(), netip.Prefix.Compare)
	return found || i > 0 && s[i-1].Overlaps(p) || i < len(s) && s[i].Overlaps(p)
}

func (s spans) contain(a netip.Addr) bool { return s.overlap(netip.PrefixFrom(a, a.BitLen())) }

// covers reports whether one of the ranges contains all of a prefix.
func covers(ranges []netip.Prefix, p netip.Prefix) bool {
	return slices.ContainsFunc(ranges, func(q netip.Prefix) bool { return q.Bits() <= p.Bits() && q.Contains(p.Addr()) })
}

func overlaps(ranges []netip.Prefix, p netip.Prefix) bool {
	return slices.ContainsFunc(ranges, p.Overlaps)
}
