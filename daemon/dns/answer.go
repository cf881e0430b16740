package dns

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

const (
	// schemaVersion is the version of the MCS DNS specification that the answers follow.
	schemaVersion = "1.0.0"
	// ttl is the lifetime in seconds of positive and negative answers: clients see a service appear
	// or go within that time.
	ttl = 5
	// udpSize is the largest UDP message that strait offers and accepts: it passes every link
	// without fragmentation (DNS Flag Day 2020).
	udpSize = 1232
)

// Answer answers a query about zone from the table. It does no I/O: the same query and table give
// the same answer. A nil table means that services are not known yet, and gives SERVFAIL, since
// unknown is not empty. Names outside zone are refused.
//
// Names and records follow the MCS DNS specification (KEP-1645, specification.md), and CoreDNS
// where it answers more. "<cluster>.<service>" does not exist, although names below it do: the
// specification reserves it.
func Answer(t *Table, zone string, q *dns.Msg) *dns.Msg {
	r := new(dns.Msg)
	r.SetReply(q)
	r.Answer, r.Ns, r.Extra = nil, nil, nil
	if !withEDNS(r, q) {
		return r
	}
	if rcode := check(zone, q); rcode != dns.RcodeSuccess {
		r.Rcode = rcode
		return r
	}
	r.Authoritative = true
	if t == nil {
		r.Authoritative = false
		r.Rcode = dns.RcodeServerFailure
		return r
	}
	question := q.Question[0]
	zone = dns.CanonicalName(zone)
	labels := dns.SplitDomainName(dns.CanonicalName(question.Name))
	labels = labels[:len(labels)-dns.CountLabel(zone)]
	found := t.lookup(labels)
	if !found.exists {
		r.Rcode = dns.RcodeNameError
	}
	b := builder{reply: r, name: question.Name, zone: zone, turn: int(q.Id)}
	b.answer(question.Qtype, found, labels)
	if len(r.Answer) == 0 {
		r.Ns = append(r.Ns, b.soa(zone))
	}
	return r
}

// InZone reports whether Answer should answer a query. Any other query is for an upstream.
func InZone(zone string, q *dns.Msg) bool {
	return len(q.Question) == 1 && dns.IsSubDomain(dns.CanonicalName(zone), dns.CanonicalName(q.Question[0].Name))
}

// check returns the error code of a query that is not looked up, or success.
func check(zone string, q *dns.Msg) int {
	switch {
	case q.Opcode != dns.OpcodeQuery:
		return dns.RcodeNotImplemented
	case q.Response || len(q.Question) != 1:
		return dns.RcodeFormatError
	case !InZone(zone, q), q.Question[0].Qclass != dns.ClassINET:
		return dns.RcodeRefused
	}
	switch q.Question[0].Qtype {
	case dns.TypeAXFR, dns.TypeIXFR:
		return dns.RcodeRefused
	}
	return dns.RcodeSuccess
}

// withEDNS answers an OPT record with one (RFC 6891), and reports whether to continue.
func withEDNS(r, q *dns.Msg) bool {
	opt := q.IsEdns0()
	if opt == nil {
		return true
	}
	r.SetEdns0(udpSize, opt.Do())
	opts := 0
	for _, rr := range q.Extra {
		if rr.Header().Rrtype == dns.TypeOPT {
			opts++
		}
	}
	switch {
	case opts > 1:
		r.Rcode = dns.RcodeFormatError
	case opt.Version() != 0:
		r.Rcode = dns.RcodeBadVers
	}
	return r.Rcode == dns.RcodeSuccess
}

// builder writes records into a reply.
type builder struct {
	reply *dns.Msg
	// name is the question's name in the client's own case, which some resolvers check.
	name string
	zone string
	// turn rotates address lists. That spreads clients that take the first address, and varies what
	// a truncated answer holds.
	turn int
}

func (b *builder) answer(qtype uint16, found node, labels []string) {
	r := b.reply
	if qtype == dns.TypeANY {
		if found.exists {
			r.Answer = append(r.Answer, b.any())
		}
		return
	}
	if qtype == dns.TypeA || qtype == dns.TypeAAAA {
		for _, ip := range rotate(found.addrs, b.turn) {
			if rr := b.address(b.name, ip); rr.Header().Rrtype == qtype {
				r.Answer = append(r.Answer, rr)
			}
		}
	}
	if qtype == dns.TypeTXT && found.txt != "" {
		r.Answer = append(r.Answer, &dns.TXT{Hdr: header(b.name, dns.TypeTXT), Txt: []string{found.txt}})
	}
	if qtype == dns.TypeSOA && len(labels) == 0 {
		r.Answer = append(r.Answer, b.soa(b.name))
	}
	if qtype != dns.TypeSRV {
		return
	}
	var extra []dns.RR
	known := map[string]bool{}
	for _, s := range rotate(found.srvs, b.turn) {
		target := b.service(labels)
		if s.target != "" {
			target = s.target + "." + target
		}
		if _, ok := dns.IsDomainName(target); !ok {
			// Four full labels and a long zone exceed 253 characters: no client can ask for it.
			continue
		}
		r.Answer = append(r.Answer, &dns.SRV{Hdr: header(b.name, dns.TypeSRV), Weight: 100, Port: s.port, Target: target})
		for _, ip := range s.addrs {
			if key := target + ip.String(); !known[key] {
				known[key] = true
				extra = append(extra, b.address(target, ip))
			}
		}
	}
	r.Extra = append(extra, r.Extra...) // the OPT record stays last
}

// any answers ANY with the one record of RFC 8482: the query serves amplification attacks, and no client.
func (b *builder) any() dns.RR {
	return &dns.HINFO{Hdr: header(b.name, dns.TypeHINFO), Cpu: "RFC8482"}
}

// service returns the full name of the service that labels lie in or below.
func (b *builder) service(labels []string) string {
	return strings.Join(labels[len(labels)-3:], ".") + "." + b.zone
}

func (b *builder) address(name string, ip netip.Addr) dns.RR {
	if ip = ip.Unmap(); ip.Is4() {
		return &dns.A{Hdr: header(name, dns.TypeA), A: ip.AsSlice()}
	}
	return &dns.AAAA{Hdr: header(name, dns.TypeAAAA), AAAA: ip.AsSlice()}
}

// soa returns the record that goes with every negative answer and limits how long it is cached (RFC
// 2308). Its serial is constant, because the zone cannot be transferred.
func (b *builder) soa(owner string) dns.RR {
	return &dns.SOA{Hdr: header(owner, dns.TypeSOA), Ns: "ns.dns." + b.zone, Mbox: "hostmaster." + b.zone,
		Serial: 1, Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: ttl}
}

func header(name string, rrtype uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: rrtype, Class: dns.ClassINET, Ttl: ttl}
}

// rotate returns the list rotated to begin with element turn, modulo its length.
func rotate[T any](list []T, turn int) []T {
	if len(list) < 2 {
		return list
	}
	turn %= len(list)
	out := make([]T, 0, len(list))
	return append(append(out, list[turn:]...), list[:turn]...)
}
