package netfilter

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// A node can be the entry to ClusterIPs of its cluster: other clusters call these through it. What serves
// ClusterIPs there, such as kube-proxy, replaces the address on arrival by that of a pod, which can be on
// another node. The rules below let such calls pass, and nothing else.

// entryForward lets calls of ClusterIPs go on to wherever the Service leads, but not into the tunnel
// again, to a third cluster. In nft's syntax, for each range of a guest and then for each range of Services:
//
//	ip saddr 10.99.0.2 ip daddr != @pods4 counter drop
//	ct original ip daddr 10.96.0.0/16 ct status dnat oifname != "strait0" return
//
// What guests may call was let through before: an entry is for clusters. An address that nothing replaced
// would leave for the default gateway: the rules that follow drop it.
func (c content) entryForward() (out []rule) {
	if len(c.want.ClusterIPs) == 0 {
		return nil
	}
	for _, g := range c.want.Guests {
		for _, from := range g.Range {
			f := familyOf(from.Addr())
			out = append(out, rule{fmt.Sprintf("peer %s at %s calls no other Services", g.Name, from), slices.Concat(
				f.from(from), f.destination(),
				[]expr.Any{&expr.Lookup{SourceRegister: 1, SetName: f.set, Invert: true}, &expr.Counter{}}, verdict(expr.VerdictDrop))})
		}
	}
	for _, p := range c.want.ClusterIPs {
		out = append(out, rule{fmt.Sprintf("calls of Services at %s go on", p), slices.Concat(
			familyOf(p.Addr()).called(p), replaced(), notInto(c.want.device), verdict(expr.VerdictReturn))})
	}
	return out
}

// entryAddresses gives these calls the node's address where they go beyond the node: the answer must come
// back to it, because only here is the address put back that the client called. In nft's syntax, for each
// range:
//
//	oifname != "strait0" iifname "strait0" ct original ip daddr 10.96.0.0/16 ip daddr != @pods4 masquerade
func (c content) entryAddresses() (out []rule) {
	for _, p := range c.want.ClusterIPs {
		f := familyOf(p.Addr())
		out = append(out, rule{fmt.Sprintf("calls of Services at %s have the node's address elsewhere", p), slices.Concat(
			notInto(c.want.device), []expr.Any{
				&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
				&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: deviceName(c.want.device)},
			},
			f.called(p), f.destination(),
			[]expr.Any{&expr.Lookup{SourceRegister: 1, SetName: f.set, Invert: true}, &expr.Masq{}},
		)})
	}
	return out
}

// dstNAT is the bit of a connection's status for a replaced destination.
const dstNAT = 1 << 5 // IPS_DST_NAT

// replaced matches connections whose destination was replaced.
func replaced() []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATUS, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(dstNAT), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}
}

// notInto matches what leaves by another device.
func notInto(device string) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: deviceName(device)},
	}
}

// called matches the destination address of the first packet of the connection, before any NAT.
func (f family) called(p netip.Prefix) []expr.Any {
	const original = 0 // the direction of the first packet
	return slices.Concat([]expr.Any{&expr.Ct{Key: unix.NFT_CT_DST, Register: 1, Direction: original}}, within(p))
}
