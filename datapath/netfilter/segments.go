package netfilter

import (
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// segments returns the rules that lower the maximum segment size (MSS) which a pod's SYN and the
// answer to it announce. In nft's syntax:
//
//	oifname "strait0" tcp flags & syn == syn tcp option maxseg size set rt mtu
//	iifname "strait0" tcp flags & syn == syn tcp option maxseg size set rt mtu
//
// A pod announces what fits its own device, and then TCP relies on ICMP to learn that the tunnel is
// narrower. Many networks drop ICMP. "rt mtu" is the smaller MTU of the routes to the packet's
// destination and back to its source, less the headers of IP and TCP; the kernel never raises the
// MSS. So either rule alone is right for both directions, and with both, a peer that announces too
// much does no harm. The node's own sockets need no rule, because they follow the routes' MTU.
func (c content) segments() []rule {
	clamp := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: tcpFlags, Len: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{tcpSYN}, Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte{0}},
		&expr.Rt{Register: 1, Key: expr.RtTCPMSS},
		&expr.Byteorder{SourceRegister: 1, DestRegister: 1, Op: expr.ByteorderHton, Len: 2, Size: 2},
		&expr.Exthdr{SourceRegister: 1, Op: expr.ExthdrOpTcpopt, Type: tcpOptionMSS, Offset: 2, Len: 2},
	}
	device := func(key expr.MetaKey) []expr.Any {
		return append([]expr.Any{
			&expr.Meta{Key: key, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: deviceName(c.want.device)},
		}, clamp...)
	}
	return []rule{
		{"TCP segments fit into " + c.want.device, device(expr.MetaKeyOIFNAME)},
		{"TCP segments fit into " + c.want.device + ", on the way back", device(expr.MetaKeyIIFNAME)},
	}
}

// Where TCP's flags and the MSS option are, see RFC 9293, section 3.1 and 3.2.
const (
	tcpFlags     = 13 // offset in the header, in bytes
	tcpSYN       = 0x02
	tcpOptionMSS = 2
)
