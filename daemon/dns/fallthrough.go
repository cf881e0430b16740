package dns

import (
	"context"
	"strings"

	"github.com/miekg/dns"

	"strait.io/strait/internal/tld"
)

// local reports whether a query is for a Service of the cluster's own zone, whose name falls through
// to the clusterset where the cluster has no such Service.
func (s *Server) local(q *dns.Msg) bool {
	return s.cfg.FallThrough != "" && InZone("svc."+s.cfg.FallThrough, q)
}

// answerLocal asks the upstreams, which know the cluster's own Services. Without upstreams, the
// asking server has looked already: it forwards only what it did not find.
func (s *Server) answerLocal(ctx context.Context, network string, q *dns.Msg) *dns.Msg {
	var own *dns.Msg
	if s.forward.able() {
		if own = s.forward.ask(ctx, network, q); own.Rcode != dns.RcodeNameError {
			return own
		}
	}
	return fallThrough(s.table(), s.cfg.FallThrough, q, own)
}

// fallThrough answers a query for a local name, which the cluster itself does not have, as the same
// name of the clusterset. If that does not exist either, own is the answer, unless it is nil.
func fallThrough(t *Table, zone string, q, own *dns.Msg) *dns.Msg {
	if t != nil && !t.falls(zone, q.Question[0].Name) {
		t = NewTable(nil)
	}
	r := Answer(t, zone, q)
	if own != nil && r.Rcode == dns.RcodeNameError {
		return own
	}
	return r
}

// Public reports whether a namespace is a top-level domain of the public DNS of which the cluster itself has
// no object, so that its names do not fall through.
func (t *Table) Public(namespace string) bool {
	namespace = strings.ToLower(namespace)
	return tld.Is(namespace) && !t.own[namespace]
}

// falls reports whether a local name may fall through. Pods look for github.com as
// github.com.svc.cluster.local first, by their search path, so a Service github in a namespace com, which
// any cluster can export, would answer for it. Such a namespace counts only if the cluster itself has it.
func (t *Table) falls(zone, name string) bool {
	labels := dns.SplitDomainName(dns.CanonicalName(name))
	n := len(labels) - dns.CountLabel(dns.CanonicalName(zone)) - 1 // without svc
	return n < 1 || !t.Public(labels[n-1])
}
