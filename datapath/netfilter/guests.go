package netfilter

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables/expr"
)

// A guest comes out of the tunnel like another cluster's packets, and by the rules of the filter
// reaches this node's pods. The rules below let it call what its pin allows besides, and keep it from
// the node itself, on which other clusters reach the daemon.

// guestsForward lets guests call what they may. In nft's syntax, for each range and each target:
//
//	ip saddr 10.99.0.2 ct original ip daddr 10.96.0.0/16 return
//
// The address counts that the guest called. If that was a Service's, kube-proxy has replaced it.
func (c content) guestsForward() (out []rule) {
	for _, g := range c.want.Guests {
		for _, from := range g.Range {
			for _, to := range g.To {
				if f := familyOf(from.Addr()); f.bits == to.Addr().BitLen() {
					out = append(out, rule{fmt.Sprintf("peer %s at %s calls %s", g.Name, from, to), slices.Concat(
						f.from(from), f.called(to), verdict(expr.VerdictReturn))})
				}
			}
		}
	}
	return out
}

// guestsInput keeps guests from the node. In nft's syntax:
//
//	ip saddr 10.99.0.2 counter drop
func (c content) guestsInput() (out []rule) {
	for _, g := range c.want.Guests {
		for _, from := range g.Range {
			out = append(out, rule{fmt.Sprintf("peer %s at %s does not reach the node", g.Name, from), slices.Concat(
				familyOf(from.Addr()).from(from), []expr.Any{&expr.Counter{}}, verdict(expr.VerdictDrop))})
		}
	}
	return out
}

// guestsAddresses gives what guests call beyond this node the node's address, since only this node
// has a route to them. In nft's syntax:
//
//	oifname != "strait0" ip saddr 10.99.0.2 ip daddr != @pods4 masquerade
//
// What enters the tunnel gets an address that the peer accepts by the rules that follow.
func (c content) guestsAddresses() (out []rule) {
	for _, g := range c.want.Guests {
		if len(g.To) == 0 { // nothing of it is passed on, and not every kernel can masquerade
			continue
		}
		for _, from := range g.Range {
			f := familyOf(from.Addr())
			out = append(out, rule{fmt.Sprintf("peer %s at %s has the node's address elsewhere", g.Name, from), slices.Concat(
				notInto(c.want.device), f.from(from), f.destination(),
				[]expr.Any{&expr.Lookup{SourceRegister: 1, SetName: f.set, Invert: true}, &expr.Masq{}},
			)})
		}
	}
	return out
}

// from matches the source address.
func (f family) from(p netip.Prefix) []expr.Any {
	return slices.Concat(f.only(), []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.offset, Len: uint32(f.bits / 8)},
	}, within(p))
}

// within compares register 1 with a prefix.
func within(p netip.Prefix) []expr.Any {
	size := p.Addr().BitLen() / 8
	mask := make([]byte, size)
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return []expr.Any{
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: uint32(size), Mask: mask, Xor: make([]byte, size)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: p.Masked().Addr().AsSlice()},
	}
}
