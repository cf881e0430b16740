package mesh

import (
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// Host is what a mesh must know about the machine that it is made for.
type Host struct {
	// Unknown is true if the fields below could not be read, which is not the same as empty. The
	// mesh then stays as it was.
	Unknown bool
	// Addrs are the machine's own addresses.
	Addrs []netip.Addr
	// Connected are the networks that its links lead to, and the addresses of its default gateways.
	Connected []netip.Prefix
}

func (h Host) equal(i Host) bool {
	return h.Unknown == i.Unknown && slices.Equal(h.Addrs, i.Addrs) && slices.Equal(h.Connected, i.Connected)
}

// The widest prefixes that a node can have for its pods: the largest private range of IPv4 is a /8.
const widest4, widest6 = 8, 16

// forbidden knows what no node's prefix may cover. What a prefix covers would go to that node,
// through the tunnel, for the rule that leads to strait's table comes before all other routes.
type forbidden struct {
	work
	// landmarks are sorted by prefix.
	landmarks []landmark
}

// entry reports whether a prefix holds ClusterIPs of the node's cluster.
func (n node) entry(p netip.Prefix) bool { return n.Node != nil && slices.Contains(n.ClusterIPs, p) }

// landmark is an address or network that is known not to be a remote pod's.
type landmark struct {
	prefix netip.Prefix
	kind   landmarkKind
	node   clustermesh.Origin // of an underlay address
}

type landmarkKind uint8

const (
	underlay landmarkKind = iota
	service
	hostAddr
	connected
)

func (l landmark) String() string {
	addr := l.prefix.Addr()
	switch l.kind {
	case underlay:
		return fmt.Sprintf("%s, the address of node %s", addr, l.node)
	case service:
		return fmt.Sprintf("%s, the address of a Service of this cluster", addr)
	case hostAddr:
		return fmt.Sprintf("%s, an address of this machine", addr)
	}
	if l.prefix.IsSingleIP() {
		return fmt.Sprintf("%s, to which this machine is connected", addr)
	}
	return fmt.Sprintf("%s, a network that this machine is connected to", l.prefix)
}

func newForbidden(m work) *forbidden {
	f := &forbidden{work: m}
	single := func(a netip.Addr, kind landmarkKind, o clustermesh.Origin) {
		f.landmarks = append(f.landmarks, landmark{netip.PrefixFrom(a, a.BitLen()), kind, o})
	}
	for r := range m.State.Nodes() {
		for _, a := range r.Content.Node.Addresses {
			single(a, underlay, r.Origin)
		}
	}
	for _, a := range m.Own.Addrs {
		single(a, service, clustermesh.Origin{})
	}
	for _, a := range m.Host.Addrs {
		single(a, hostAddr, clustermesh.Origin{})
	}
	for _, p := range m.Host.Connected {
		f.landmarks = append(f.landmarks, landmark{prefix: p.Masked(), kind: connected})
	}
	slices.SortStableFunc(f.landmarks, func(a, b landmark) int { return comparePrefix(a.prefix, b.prefix) })
	return f
}

// refusal is what a prefix covers, or lies in, so that it is not routed into a tunnel.
type refusal struct {
	covers string
	// contested: only a third cluster's word is against it. It may be that one that is wrong, so the
	// addresses go to no node.
	contested bool
}

// outweighs reports whether a node keeps its prefix against the address of another node in it. What the cluster
// publishes of the ranges of its pods comes before what one of its nodes publishes of its own address, which can be
// anything. A single address is no range of pods; that, and another cluster's word, count unless the node had
// the prefix first.
func (f *forbidden) outweighs(n node, p netip.Prefix, l landmark) bool {
	if l.kind != underlay || n.Node == nil || l.node == n.origin {
		return false
	}
	switch neighbours := l.node.Cluster == n.origin.Cluster; {
	case neighbours && !p.IsSingleIP():
		return true
	case neighbours, l.node.Cluster != f.Self.Cluster:
		return f.had.prefix(&n, p)
	}
	return false
}

// strangers warns of the addresses of other nodes in a prefix that a node keeps nevertheless: it names both.
func (f *forbidden) strangers(n node, p netip.Prefix) (out []clustermesh.Problem) {
	for _, l := range f.within(p) {
		if f.outweighs(n, p, l) {
			out = append(out, contested(l.node, "addresses", fmt.Sprintf("%s lies inside %s, where node %s has its pods, which keeps it: from here that address leads to a pod", l.prefix.Addr(), p, n.origin),
				"correct the InternalIP of one Node or the pod CIDR of the other; if it was not by mistake, revoke the node's key"))
		}
	}
	return out
}

// within returns the landmarks in a prefix.
func (f *forbidden) within(p netip.Prefix) []landmark {
	at, _ := slices.BinarySearchFunc(f.landmarks, p.Masked(), func(l landmark, p netip.Prefix) int { return comparePrefix(l.prefix, p) })
	end := at
	for end < len(f.landmarks) && p.Contains(f.landmarks[end].prefix.Addr()) {
		end++
	}
	return f.landmarks[at:end]
}

// contested warns of what others claim of a node, or it of others, and what cost nothing.
func contested(o clustermesh.Origin, field, message, try string) clustermesh.Problem {
	return o.Ref().Problem(clustermesh.Problem{Code: problem.Contested, Field: field, Message: message, Try: try, Warning: true})
}

// check returns nil if the node can have the prefix for its pods.
func (f *forbidden) check(n node, p netip.Prefix) *refusal {
	widest := widest4
	if p.Addr().Is6() {
		widest = widest6
	}
	if p.Bits() < widest {
		return &refusal{covers: fmt.Sprintf("%s has more addresses than the pods of a node; the widest is a /%d", p, widest)}
	}
	if err := clustermesh.CheckPrefix(p); err != nil {
		return &refusal{covers: err.Error()}
	}
	if r, is := clustermesh.TunnelRange(p); is && p != netip.PrefixFrom(clustermesh.TunnelAddr(n.origin, p.Addr().Is6()), p.Addr().BitLen()) {
		return &refusal{covers: fmt.Sprintf("%s overlaps %s, of which a node has one address that strait chooses", p, r)}
	}
	if i := slices.IndexFunc(f.ClusterIPs, p.Overlaps); i >= 0 && n.entry(p) && n.origin.Cluster != f.Self.Cluster {
		return &refusal{covers: fmt.Sprintf("%s overlaps %s, where this cluster has ClusterIPs of its own", p, f.ClusterIPs[i])}
	}
	return f.covered(n, p)
}

// covered looks for a landmark in the prefix. A prefix that lies in a network of this machine can be
// that of pods there, if nodes and pods of several clusters share a network.
func (f *forbidden) covered(n node, p netip.Prefix) (out *refusal) {
	for _, l := range f.within(p) {
		if !f.counts(l, n, p) || f.outweighs(n, p, l) {
			continue
		}
		contested := l.kind == underlay && l.node.Cluster != f.Self.Cluster && l.node.Cluster != n.origin.Cluster
		if out == nil || !contested {
			out = &refusal{fmt.Sprintf("%s covers %s", p, l), contested}
		}
		if !contested {
			break
		}
	}
	return out
}

// counts reports whether a landmark is anything to a node's prefix. In this cluster's own prefixes,
// this machine has addresses too, such as that of the CNI's bridge; other clusters do not get those
// prefixes anyway. The entry to this cluster's ClusterIPs has them all.
func (f *forbidden) counts(l landmark, n node, p netip.Prefix) bool {
	if l.kind == service && n.origin.Cluster == f.Self.Cluster {
		return !n.entry(p)
	}
	if l.kind != hostAddr && l.kind != connected {
		return true
	}
	return n.origin.Cluster != f.Self.Cluster && !f.ours(l.prefix)
}

// ours reports whether a prefix of this machine's own cluster contains p.
func (f *forbidden) ours(p netip.Prefix) bool {
	for r := range f.State.Nodes() {
		if r.Origin.Cluster != f.Self.Cluster {
			continue
		}
		for _, own := range r.Content.Node.Prefixes {
			if own.Bits() <= p.Bits() && own.Contains(p.Addr()) {
				return true
			}
		}
	}
	return false
}

// refused makes one Problem of all the prefixes of a node that were refused.
func refused(o clustermesh.Origin, all []refusal) clustermesh.Problem {
	more := ""
	if n := len(all) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more of its prefixes are refused)", n)
	}
	return o.Ref().Problem(clustermesh.Problem{
		Code:    problem.PrefixForbidden,
		Field:   "prefixes",
		Message: fmt.Sprintf("%s%s: pods of %s there cannot be reached through the tunnel", all[0].covers, more, o),
		Try:     "let the node list only addresses of its pods: correct its annotation strait.io/prefixes or strait.io/cluster-ips, its podCIDR or nodePrefixes",
	})
}
