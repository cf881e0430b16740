package netfilter

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"go4.org/netipx"
	"golang.org/x/sys/unix"
)

const tableName = "strait"

// The chains that drop packets of other clusters. docs/ports.md names them.
const filterInput, filterForward = "filterinput", "filterforward"

// maxElements is how many elements are put into one message: an attribute is limited to 64 KiB, and
// an IPv6 element takes up to 36 bytes.
const maxElements = 1000

// table is of the family inet, so that one table and chain serve IPv4 and IPv6.
var table = &nftables.Table{Name: tableName, Family: nftables.TableFamilyINet}

// family has the differences between the rules for IPv4 and IPv6.
type family struct {
	name   string
	number byte
	set    string
	key    nftables.SetDatatype
	bits   int
	// offset is where the source address is in the IP header, in bytes.
	offset uint32
	// icmp is the number of ICMP, icmpTypes those of its messages that a node answers or needs: echo,
	// and errors about packets.
	icmp      byte
	icmpTypes []byte
}

var families = []family{
	{"IPv4", unix.NFPROTO_IPV4, "pods4", nftables.TypeIPAddr, 32, 12, unix.IPPROTO_ICMP, []byte{0, 3, 8, 11, 12}},
	{"IPv6", unix.NFPROTO_IPV6, "pods6", nftables.TypeIP6Addr, 128, 8, unix.IPPROTO_ICMPV6, []byte{1, 2, 3, 4, 128, 129}},
}

func familyOf(a netip.Addr) family {
	if a.Is6() {
		return families[1]
	}
	return families[0]
}

// chain is a base chain: its rules see each packet that passes the hook.
type chain struct {
	name     string
	kind     nftables.ChainType
	hook     nftables.ChainHook
	priority nftables.ChainPriority
	rules    []rule
}

// in reports whether the kernel's chain is on the right hook with the right priority, and lets pass what no
// rule drops.
func (c chain) in(have *nftables.Chain) bool {
	if have.Policy != nil && *have.Policy != nftables.ChainPolicyAccept {
		return false
	}
	return have.Type == c.kind && have.Hooknum != nil && *have.Hooknum == c.hook &&
		have.Priority != nil && *have.Priority == c.priority
}

// rule is an nft rule. Its comment describes the rule to people who list the table.
type rule struct {
	comment string
	exprs   []expr.Any
}

// chains returns the table's chains, with their rules.
func (c content) chains() []chain {
	return []chain{
		// Before srcnat (100), where CNIs, kube-proxy and iptables masquerade: a connection keeps
		// the first NAT that is applied to it. An accept verdict would not do, because it ends only
		// this chain.
		{"postrouting", nftables.ChainTypeNAT, *nftables.ChainHookPostrouting, 90, c.addresses()},
		// Before dstnat (-100), where kube-proxy could send a NodePort elsewhere.
		{"prerouting", nftables.ChainTypeNAT, *nftables.ChainHookPrerouting, *nftables.ChainPriorityNATDest - 10, c.listeners()},
		{"forward", nftables.ChainTypeFilter, *nftables.ChainHookForward, *nftables.ChainPriorityMangle, c.segments()},
		// Chains of their own: a return ends only the chain that has it.
		{filterForward, nftables.ChainTypeFilter, *nftables.ChainHookForward, *nftables.ChainPriorityFilter - 1, c.filterForward()},
		{filterInput, nftables.ChainTypeFilter, *nftables.ChainHookInput, *nftables.ChainPriorityFilter - 1, c.filterInput()},
	}
}

// addresses returns the rules about source addresses, in order: those of guestsAddresses and
// entryAddresses, and in nft's syntax:
//
//	oifname != "strait0" return
//	ip saddr @pods4 snat ip to ip saddr
//	ip6 saddr @pods6 snat ip6 to ip6 saddr
//	meta nfproto ipv4 snat ip to 10.1.1.1
//
// The last is for packets whose source is neither a pod nor the source address of strait's routes,
// such as a connection that kube-proxy redirected to another cluster after its source address had
// been chosen. A peer would drop them.
func (c content) addresses() []rule {
	out := append(slices.Concat(c.guestsAddresses(), c.entryAddresses()), rule{"only what enters " + c.want.device, []expr.Any{
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: deviceName(c.want.device)},
		&expr.Verdict{Kind: expr.VerdictReturn},
	}})
	for _, f := range families {
		out = append(out, rule{f.name + " pods keep their addresses", append(f.only(),
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.offset, Len: uint32(f.bits / 8)},
			&expr.Lookup{SourceRegister: 1, SetName: f.set},
			f.snat(),
		)})
		if c.want.Node.BitLen() == f.bits {
			out = append(out, rule{fmt.Sprintf("all else has the address of the node, %s", c.want.Node), append(f.only(),
				&expr.Immediate{Register: 1, Data: c.want.Node.AsSlice()},
				f.snat(),
			)})
		}
	}
	return out
}

func (f family) only() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{f.number}},
	}
}

// snat translates the source address to the one in register 1.
func (f family) snat() expr.Any {
	return &expr.NAT{Type: expr.NATTypeSourceNAT, Family: uint32(f.number), RegAddrMin: 1}
}

// listeners returns the rules that lead ports of the node's address inside the tunnel on to pods that
// use the node's network. In nft's syntax:
//
//	iifname != "strait0" return
//	ip daddr 10.1.1.1 tcp dport 9100 dnat ip to 192.168.7.1
func (c content) listeners() []rule {
	out := []rule{onlyFrom(c.want.device)}
	for _, l := range c.want.Listeners {
		out = append(out, rule{
			fmt.Sprintf("%s port %d of %s is at %s", l.Proto, l.Port, c.want.Node, l.Addr),
			slices.Concat(to(c.want.Node), port(l), []expr.Any{
				&expr.Immediate{Register: 1, Data: l.Addr.AsSlice()},
				&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(familyOf(l.Addr).number), RegAddrMin: 1},
			}),
		})
	}
	return out
}

// deviceName returns the name in the form that the kernel compares: padded with zero bytes.
func deviceName(name string) []byte {
	b := make([]byte, unix.IFNAMSIZ)
	copy(b, name)
	return b
}

// put replaces the whole table in one transaction, so that no packet sees a partial table. The
// error is the kernel's.
func put(c content, replace bool) error {
	var conn nftables.Conn
	if replace {
		conn.DelTable(table)
	}
	conn.AddTable(table)
	for _, f := range families {
		set := &nftables.Set{Table: table, Name: f.set, KeyType: f.key, Interval: true}
		if err := conn.AddSet(set, nil); err != nil {
			return fmt.Errorf("encode set %s: %w", f.set, err)
		}
		for some := range slices.Chunk(elements(f, c.pods), maxElements) {
			if err := conn.SetAddElements(set, some); err != nil {
				return fmt.Errorf("encode elements of set %s: %w", f.set, err)
			}
		}
	}
	for _, ch := range c.chains() {
		added := conn.AddChain(&nftables.Chain{Name: ch.name, Table: table, Type: ch.kind, Hooknum: &ch.hook, Priority: &ch.priority})
		for _, r := range ch.rules {
			conn.AddRule(&nftables.Rule{
				Table: table, Chain: added, Exprs: r.exprs,
				UserData: userdata.AppendString(nil, userdata.TypeComment, r.comment),
			})
		}
	}
	return conn.Flush()
}

// elements returns the elements of a family's set. Each range has two: its first address, and as
// the end the address after its last. The end is omitted if the last address is the family's last.
func elements(f family, pods []netipx.IPRange) (out []nftables.SetElement) {
	for _, r := range pods {
		if r.From().BitLen() != f.bits {
			continue
		}
		out = append(out, nftables.SetElement{Key: r.From().AsSlice()})
		if end := r.To().Next(); end.IsValid() {
			out = append(out, nftables.SetElement{Key: end.AsSlice(), IntervalEnd: true})
		}
	}
	return out
}

// toRanges is the inverse of elements. It accepts elements in any order.
func toRanges(elements []nftables.SetElement) (out []netipx.IPRange) {
	sortByKey(elements)
	for _, e := range elements {
		a, ok := netip.AddrFromSlice(e.Key)
		switch n := len(out) - 1; {
		case !ok:
		case !e.IntervalEnd:
			out = append(out, netipx.IPRangeFrom(a, netipx.PrefixLastIP(netip.PrefixFrom(a, 0))))
		case n >= 0:
			out[n] = netipx.IPRangeFrom(out[n].From(), a.Prev())
		}
	}
	return out
}
