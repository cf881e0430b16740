package dns

import (
	"context"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"strait.io/strait/daemon/clusterdns"
)

// lookTimeout bounds each query of a look.
const lookTimeout = time.Second

// Look asks another DNS server whether it answers for the zone. If its answer does not tell, because
// it cannot reach the servers to which it passes names on, Look asks it for the name of its own
// address: a cluster's DNS that works knows that.
func Look(ctx context.Context, server netip.AddrPort, zone string) clusterdns.Sight {
	zone = dns.CanonicalName(zone)
	r, err := query(ctx, server, zone, dns.TypeSOA)
	if s := sight(r, zone); err == nil && s != clusterdns.Unknown {
		return s
	}
	own, err := dns.ReverseAddr(server.Addr().String())
	if err != nil {
		return clusterdns.Unknown
	}
	if r, err = query(ctx, server, own, dns.TypePTR); err == nil && r.Rcode == dns.RcodeSuccess && len(r.Answer) > 0 {
		return clusterdns.Lacks
	}
	return clusterdns.Unknown
}

func query(ctx context.Context, server netip.AddrPort, name string, kind uint16) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return exchange(ctx, "udp", server.String(), new(dns.Msg).SetQuestion(name, kind))
}

// sight says what an answer to a query for the SOA of the zone shows. A server that answers for it has
// that record.
func sight(r *dns.Msg, zone string) clusterdns.Sight {
	if r == nil {
		return clusterdns.Unknown
	}
	switch r.Rcode {
	case dns.RcodeSuccess:
		for _, rr := range r.Answer {
			if rr.Header().Rrtype == dns.TypeSOA && dns.CanonicalName(rr.Header().Name) == zone {
				return clusterdns.Answers
			}
		}
		return clusterdns.Lacks
	case dns.RcodeNameError, dns.RcodeRefused, dns.RcodeNotAuth:
		return clusterdns.Lacks
	}
	return clusterdns.Unknown // such as SERVFAIL
}
