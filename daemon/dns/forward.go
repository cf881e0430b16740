package dns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

const (
	// upstreamTimeout bounds one query to one upstream: two fit into the five seconds after which
	// resolvers give up.
	upstreamTimeout = 2 * time.Second
	// maxForwards bounds the queries in progress, so that a dead upstream does not exhaust the
	// daemon.
	maxForwards = 1000
)

// forwarder passes queries on to upstream servers.
type forwarder struct {
	upstreams []string // "address:port"
	refused   []clustermesh.Problem
	// first is the upstream that answered last, which is asked first.
	first    atomic.Int32
	underWay chan struct{}

	mu   sync.Mutex
	down map[string]string // upstream → why it did not answer last
}

func newForwarder(upstreams, own []netip.AddrPort) *forwarder {
	f := &forwarder{underWay: make(chan struct{}, maxForwards), down: map[string]string{}}
	for i, addr := range upstreams {
		why := ""
		switch {
		case slices.Contains(own, addr):
			why = "is this server: it would ask itself"
		case addr.Port() == 0:
			why = "has no port"
		default:
			f.upstreams = append(f.upstreams, addr.String())
			continue
		}
		f.refused = append(f.refused, clustermesh.Problem{Code: problem.UpstreamInvalid, Object: "dns", Field: fmt.Sprintf("upstreams[%d]", i),
			Message: addr.String() + " " + why + ": not used", Try: "write ADDRESS:PORT of another DNS server"})
	}
	return f
}

// able reports whether there is an upstream to ask.
func (f *forwarder) able() bool { return len(f.upstreams) > 0 }

// ask asks the upstreams in turn, over the protocol that the client used: if an answer is
// truncated, the client repeats its query over TCP. If no upstream answers, ask returns SERVFAIL.
func (f *forwarder) ask(ctx context.Context, network string, q *dns.Msg) *dns.Msg {
	fail := new(dns.Msg).SetRcode(q, dns.RcodeServerFailure)
	fail.RecursionAvailable = true
	select {
	case f.underWay <- struct{}{}:
		defer func() { <-f.underWay }()
	default:
		return fail
	}
	first := int(f.first.Load())
	for i := range f.upstreams {
		n := (first + i) % len(f.upstreams)
		r, err := exchange(ctx, network, f.upstreams[n], q)
		if ctx.Err() != nil {
			return fail
		}
		f.note(f.upstreams[n], err)
		if err == nil {
			f.first.Store(int32(n))
			return r
		}
	}
	return fail
}

func exchange(ctx context.Context, network, upstream string, q *dns.Msg) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, upstreamTimeout)
	defer cancel()
	c := &dns.Client{Net: network, Timeout: upstreamTimeout, UDPSize: dns.MaxMsgSize}
	ask := q.Copy()
	ask.Id = dns.Id() // other programs on the client's machine can easily guess its id
	r, _, err := c.ExchangeContext(ctx, ask, upstream)
	if err != nil {
		return nil, err
	}
	if len(r.Question) != 1 || !strings.EqualFold(r.Question[0].Name, q.Question[0].Name) {
		return nil, fmt.Errorf("answered a different question")
	}
	r.Id = q.Id
	return r, nil
}

// note records which upstreams are down, for Problems.
func (f *forwarder) note(upstream string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.down, upstream)
		return
	}
	f.down[upstream] = err.Error()
	if n, ok := err.(net.Error); ok && n.Timeout() {
		f.down[upstream] = fmt.Sprintf("no answer within %s", upstreamTimeout)
	}
}

func (f *forwarder) problems() []clustermesh.Problem {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := slices.Clone(f.refused)
	for upstream, why := range f.down {
		out = append(out, clustermesh.Problem{Code: problem.UpstreamSilent, Object: "dns", Field: "upstream " + upstream, Message: why,
			Try: "check the server; names outside the clusterset may not resolve", Warning: true})
	}
	return out
}
