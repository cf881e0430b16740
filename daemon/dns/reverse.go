package dns

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// host is what an address is called: a service, or one of its endpoints.
type host struct {
	service *Service
	// endpoint is an index of Endpoints; negative for the service itself.
	endpoint int
}

// hosts returns what each address is called. An address has one name: that of the first service by
// name, and a service's own before an endpoint's.
func (t *Table) hosts() map[netip.Addr]host {
	out := map[netip.Addr]host{}
	put := func(a netip.Addr, h host) {
		if have, is := out[a]; !is || h.before(have) {
			out[a] = h
		}
	}
	for _, s := range t.services {
		for _, a := range s.IPs {
			put(a.Unmap(), host{s, -1})
		}
		for i, e := range s.Endpoints {
			put(e.IP.Unmap(), host{s, i})
		}
	}
	return out
}

func (h host) before(o host) bool {
	if own, others := h.endpoint < 0, o.endpoint < 0; own != others {
		return own
	}
	if c := h.service.Name.Compare(o.service.Name); c != 0 {
		return c < 0
	}
	return h.endpoint < o.endpoint
}

// name returns the host's name in the zone.
func (h host) name(zone string) string {
	name := strings.ToLower(h.service.Name.Name+"."+h.service.Name.Namespace) + ".svc." + zone
	if h.endpoint < 0 {
		return name
	}
	e := h.service.Endpoints[h.endpoint]
	return e.label() + "." + strings.ToLower(string(e.Cluster)) + "." + name
}

// AnswerReverse answers the PTR query for an address of the table, which the MCS DNS specification
// (2.3.3 and 2.4.3) leaves open; false for all other queries, which are for an upstream.
func AnswerReverse(t *Table, zone string, q *dns.Msg) (*dns.Msg, bool) {
	if t == nil || q.Opcode != dns.OpcodeQuery || q.Response || len(q.Question) != 1 ||
		q.Question[0].Qtype != dns.TypePTR || q.Question[0].Qclass != dns.ClassINET {
		return nil, false
	}
	a, ok := reversed(dns.CanonicalName(q.Question[0].Name))
	if !ok {
		return nil, false
	}
	h, is := t.reverse()[a]
	if !is {
		return nil, false
	}
	r := new(dns.Msg)
	r.SetReply(q)
	r.Answer, r.Ns, r.Extra = nil, nil, nil
	if withEDNS(r, q) {
		r.Authoritative = true
		r.Answer = []dns.RR{&dns.PTR{Hdr: header(q.Question[0].Name, dns.TypePTR), Ptr: h.name(dns.CanonicalName(zone))}}
	}
	return r, true
}

// reversed returns the address that a name below in-addr.arpa or ip6.arpa stands for (RFC 1035 3.5,
// RFC 3596 2.5); false for all other names. The name is in lower case and ends with a dot.
func reversed(name string) (netip.Addr, bool) {
	var a netip.Addr
	if rest, is := strings.CutSuffix(name, ".in-addr.arpa."); is {
		labels := strings.Split(rest, ".")
		var b [4]byte
		if len(labels) != len(b) {
			return a, false
		}
		for i, l := range labels {
			n, err := strconv.ParseUint(l, 10, 8)
			if err != nil {
				return a, false
			}
			b[3-i] = byte(n)
		}
		a = netip.AddrFrom4(b)
	} else if rest, is := strings.CutSuffix(name, ".ip6.arpa."); is {
		labels := strings.Split(rest, ".")
		var b [16]byte
		if len(labels) != 2*len(b) {
			return a, false
		}
		for i, l := range labels {
			n, err := strconv.ParseUint(l, 16, 4)
			if err != nil {
				return a, false
			}
			b[15-i/2] |= byte(n) << (4 * (i % 2))
		}
		a = netip.AddrFrom16(b)
	}
	// Only the usual spelling counts: "010" and "+1" are no labels of an address.
	if !a.IsValid() {
		return a, false
	}
	usual, err := dns.ReverseAddr(a.String())
	return a.Unmap(), err == nil && usual == name
}
