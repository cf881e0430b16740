package netfilter

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
)

// What comes out of the tunnel was sent by another cluster. The rules in filterInput and filterForward
// let it reach this node's pods, and answers to what the node itself asked. Without them, another
// cluster could reach every listener of the node, and through the node, which forwards, everything
// that the node can reach.

// filterForward returns the rules for packets that the node passes on. In nft's syntax:
//
//	iifname != "strait0" return
//	ct state established,related return
//	… and the rules of guestsForward and entryForward
//	meta nfproto ipv4 ip daddr != @pods4 ct state untracked counter drop
//	meta nfproto ipv4 ip daddr != @pods4 counter drop
//	… and both for ip6 daddr and @pods6
//
// The second is also for answers to a client of a NodePort: its connection left with the node's
// address, and the answer goes on to the client.
func (c content) filterForward() []rule {
	device := c.want.device
	out := slices.Concat(answers(device), c.guestsForward(), c.entryForward())
	for _, f := range families {
		out = append(out, refused(fmt.Sprintf("all else goes to this node's pods, %s", f.name), slices.Concat(
			f.only(), f.destination(), []expr.Any{&expr.Lookup{SourceRegister: 1, SetName: f.set, Invert: true}},
		))...)
	}
	return out
}

// filterInput returns the rules for packets to the node itself. In nft's syntax:
//
//	iifname != "strait0" return
//	ct state established,related return
//	… and the rules of guestsInput
//	meta nfproto ipv4 ip daddr 10.1.1.1 tcp dport 7946 return
//	meta nfproto ipv4 ip daddr 10.1.1.1 icmp type echo-request return
//	… and ICMP's errors
//	meta nfproto ipv4 ip daddr 192.168.7.1 tcp dport 9100 return
//	ct state untracked counter drop
//	counter drop
//
// The last but two is for pods that use the node's network.
func (c content) filterInput() []rule {
	w := c.want
	out := append(answers(w.device), c.guestsInput()...)
	for _, f := range families {
		if w.Node.BitLen() != f.bits {
			continue
		}
		toNode := to(w.Node)
		if w.Port != 0 {
			out = append(out, rule{fmt.Sprintf("peers' daemons reach TCP port %d of %s", w.Port, w.Node),
				slices.Concat(toNode, protocol(unix.IPPROTO_TCP), transport(destinationPort, binary.BigEndian.AppendUint16(nil, w.Port)),
					verdict(expr.VerdictReturn))})
		}
		for _, typ := range f.icmpTypes {
			out = append(out, rule{fmt.Sprintf("ICMP type %d reaches %s", typ, w.Node),
				slices.Concat(toNode, protocol(f.icmp), transport(icmpType, []byte{typ}), verdict(expr.VerdictReturn))})
		}
	}
	for _, l := range w.Listeners {
		out = append(out, rule{fmt.Sprintf("the pod at %s %s port %d is reached", l.Addr, l.Proto, l.Port),
			slices.Concat(to(l.Addr), port(l), verdict(expr.VerdictReturn))})
	}
	return append(out, refused("all else does not reach the node", nil)...)
}

// untracked ends the comments of rules that drop packets of no connection that the kernel tracks.
const untracked = ", untracked"

// refused returns the rules that count and drop what matches. Untracked packets are counted apart:
// some of them are answers to the node, and no rule can distinguish them.
func refused(comment string, match []expr.Any) []rule {
	drop := slices.Concat([]expr.Any{&expr.Counter{}}, verdict(expr.VerdictDrop))
	return []rule{
		{comment + untracked, slices.Concat(match, state(expr.CtStateBitUNTRACKED), drop)},
		{comment, slices.Concat(match, drop)},
	}
}

// Where the destination port and ICMP's type are in the transport header, in bytes.
const (
	destinationPort = 2
	icmpType        = 0
)

// answers returns the rules that let everything pass that did not come by the device, and of that,
// packets of connections that were let through before, and errors about them.
func answers(device string) []rule {
	return []rule{
		onlyFrom(device),
		{"answers pass", slices.Concat(state(expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), verdict(expr.VerdictReturn))},
	}
}

// state matches packets whose connection is in one of the states.
func state(bits uint32) []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(bits), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}
}

// onlyFrom returns a rule that lets everything pass that did not come by the device.
func onlyFrom(device string) rule {
	return rule{"only what comes by " + device, slices.Concat([]expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: deviceName(device)},
	}, verdict(expr.VerdictReturn))}
}

// to matches a destination address.
func to(a netip.Addr) []expr.Any {
	f := familyOf(a)
	return slices.Concat(f.only(), f.destination(), []expr.Any{&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: a.AsSlice()}})
}

// port matches the protocol and destination port of a listener.
func port(l datapath.Listener) []expr.Any {
	return slices.Concat(protocol(byte(l.Proto)), transport(destinationPort, binary.BigEndian.AppendUint16(nil, l.Port)))
}

// destination loads the destination address into register 1.
func (f family) destination() []expr.Any {
	size := uint32(f.bits / 8)
	return []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.offset + size, Len: size}}
}

func protocol(number byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{number}},
	}
}

// transport matches bytes of the transport header.
func transport(offset uint32, want []byte) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: uint32(len(want))},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: want},
	}
}

func verdict(kind expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: kind}} }
