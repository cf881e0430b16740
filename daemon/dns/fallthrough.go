package dns

import (
	"context"

	"github.com/miekg/dns"
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
	r := Answer(t, zone, q)
	if own != nil && r.Rcode == dns.RcodeNameError {
		return own
	}
	return r
}
