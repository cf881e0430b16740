// Package dns answers for the clusterset's zone, clusterset.local, from a table of services, and
// passes other names on.
//
// Inputs are an immutable Table, made by the caller from plain values, and packets; outputs are
// answers and Problems. Answer is pure; Server is the shell. It must not know State, the plan or
// the kernel.
package dns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/miekg/dns"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

const (
	// DefaultZone is the zone of the MCS API.
	DefaultZone = "clusterset.local"
	// retry is how long to wait before listening again on an address that was absent or in use.
	retry = time.Second
	// grace is how long answers in progress can take when the server stops.
	grace = 2 * time.Second
)

// Config is where to listen, and which names to answer.
type Config struct {
	// Listen are the addresses to serve, each over UDP and TCP.
	Listen []netip.AddrPort
	// Coming are addresses in Listen that this machine may get only later. They are bound even
	// before it has them.
	Coming []netip.Addr
	// Upstreams answer names outside Zone and are asked in turn. Without upstreams such names are
	// refused.
	Upstreams []netip.AddrPort
	// Zone is DefaultZone if empty.
	Zone string
	// FallThrough is the cluster's own zone, such as cluster.local: names of Services in it that the
	// upstreams do not know are answered as those of Zone. Empty means none.
	FallThrough string
	// Log may be nil.
	Log *slog.Logger
}

// Server answers DNS queries. Make one with New, then Run it.
type Server struct {
	cfg     Config
	table   func() *Table
	forward *forwarder

	mu       sync.Mutex
	problems map[string]clustermesh.Problem // by listener
	serving  map[string]net.Addr            // by listener
}

// New makes a server. For each query it calls table, which returns nil while services are not known
// yet.
func New(cfg Config, table func() *Table) *Server {
	cfg.Zone = dns.CanonicalName(cmp.Or(cfg.Zone, DefaultZone))
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{
		cfg: cfg, table: table, forward: newForwarder(cfg.Upstreams, cfg.Listen),
		problems: map[string]clustermesh.Problem{}, serving: map[string]net.Addr{},
	}
}

// Problems returns what keeps the server from answering somewhere now.
func (s *Server) Problems() []clustermesh.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	return clustermesh.SortProblems(append(slices.Collect(maps.Values(s.problems)), s.forward.problems()...))
}

// Run serves every address until ctx is done, then returns nil. An address that is in use or absent
// is a Problem and is retried every second, while the others are served.
func (s *Server) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, addr := range s.cfg.Listen {
		for _, network := range []string{"udp", "tcp"} {
			wg.Go(func() { s.keep(ctx, network, addr) })
		}
	}
	wg.Wait()
	<-ctx.Done() // also if there is nothing to listen on
	return nil
}

// keep serves one address over one protocol, and listens again after every failure.
func (s *Server) keep(ctx context.Context, network string, addr netip.AddrPort) {
	key := network + " " + addr.String()
	defer s.report(key, nil, nil)
	for {
		err := s.serve(ctx, network, addr)
		if ctx.Err() != nil {
			return
		}
		s.report(key, nil, listenProblem(network, addr, err))
		select {
		case <-ctx.Done():
			return
		case <-time.After(retry):
		}
	}
}

// report records that a listener serves at bound, or that it has a problem, or neither.
func (s *Server) report(key string, bound net.Addr, p *clustermesh.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, had := s.problems[key]
	delete(s.problems, key)
	delete(s.serving, key)
	switch {
	case bound != nil:
		s.serving[key] = bound
		s.cfg.Log.Info("dns is listening", "network", bound.Network(), "address", bound.String())
	case p != nil:
		s.problems[key] = *p
		if !had || old != *p {
			s.cfg.Log.Warn("problem", "code", p.Code, "what", p.String())
		}
	}
}

func listenProblem(network string, addr netip.AddrPort, err error) *clustermesh.Problem {
	p := &clustermesh.Problem{Code: problem.DNSNotListening, Object: "dns", Field: fmt.Sprintf("listen %s/%s", addr, network), Message: fmt.Sprint(err),
		Try: "correct the address; it is tried again each second"}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		p.Message, p.Try = "the address is in use by another program",
			"stop that program or choose another address; it is tried again each second"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		p.Message, p.Try = "this machine does not have the address",
			"add the address to an interface or choose another; it is tried again each second"
	case errors.Is(err, syscall.EACCES):
		p.Message, p.Try = "not allowed", "run as root, or choose a port above 1023"
	}
	return p
}

// serve listens and answers until ctx is done or the socket fails.
func (s *Server) serve(ctx context.Context, network string, addr netip.AddrPort) error {
	srv := s.listener(ctx, network)
	var bound net.Addr
	var err error
	listen := net.ListenConfig{}
	if slices.Contains(s.cfg.Coming, addr.Addr()) {
		listen.Control = bindAnyway
	}
	if network == "udp" {
		if srv.PacketConn, err = listen.ListenPacket(ctx, network, addr.String()); err == nil {
			bound = srv.PacketConn.LocalAddr()
		}
	} else {
		if srv.Listener, err = listen.Listen(ctx, network, addr.String()); err == nil {
			bound = srv.Listener.Addr()
			srv.Listener = &limited{Listener: srv.Listener}
		}
	}
	if err != nil {
		return err
	}
	started, done := make(chan struct{}), make(chan error, 1)
	srv.NotifyStartedFunc = func() { close(started) }
	go func() { done <- srv.ActivateAndServe() }()
	select {
	case <-started:
	case err := <-done:
		return err
	}
	s.report(network+" "+addr.String(), bound, nil)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err = srv.ShutdownContext(stop)
	return errors.Join(err, <-done)
}

// listener returns what reads queries from one socket. It drops answers, so that two servers cannot keep each
// other busy.
func (s *Server) listener(ctx context.Context, network string) *dns.Server {
	return &dns.Server{Net: network, IdleTimeout: func() time.Duration { return idleTimeout }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		s.handle(ctx, network, w, q)
	})}
}

// bindAnyway lets a socket of either IP family bind to an address that no device has. For IPv4 a
// route of type local would be enough; IPv6 requires the address on a device even then.
func bindAnyway(_, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) { set = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_FREEBIND, 1) })
	return errors.Join(err, set)
}

// handle answers one query.
func (s *Server) handle(ctx context.Context, network string, w dns.ResponseWriter, q *dns.Msg) {
	r := s.answer(ctx, network, q)
	size := dns.MaxMsgSize
	if network == "udp" {
		size = limit(q)
	}
	r.Truncate(size)
	err := w.WriteMsg(r)
	if err != nil {
		// A record that cannot be packed must not look like a lost packet.
		err = errors.Join(err, w.WriteMsg(new(dns.Msg).SetRcode(q, dns.RcodeServerFailure)))
	}
	if err != nil {
		s.cfg.Log.Debug("dns answer", "to", w.RemoteAddr().String(), "err", err)
	}
}

// answer finds who knows the name: this server, the upstreams, or the one and then the other.
func (s *Server) answer(ctx context.Context, network string, q *dns.Msg) *dns.Msg {
	outside := q.Opcode == dns.OpcodeQuery && len(q.Question) == 1 && !InZone(s.cfg.Zone, q)
	r, is := AnswerReverse(s.table(), s.cfg.Zone, q)
	switch {
	case is:
	case outside && s.local(q):
		r = s.answerLocal(ctx, network, q)
	case outside && s.forward.able():
		return s.forward.ask(ctx, network, q)
	default:
		r = Answer(s.table(), s.cfg.Zone, q)
	}
	r.RecursionAvailable = s.forward.able()
	return r
}

// limit returns the largest UDP answer for a query: what the client accepts, but never more than
// fits without fragmentation. A truncated answer makes the client ask again over TCP.
func limit(q *dns.Msg) int {
	opt := q.IsEdns0()
	if opt == nil {
		return dns.MinMsgSize
	}
	return int(min(max(opt.UDPSize(), dns.MinMsgSize), udpSize))
}
