// Package server is the daemon's HTTP server: the answers of package api for root on a unix socket and for
// the daemons of other nodes, and metrics and probes on TCP.
//
// Inputs are a Source of answers, the Peers that answer for other nodes, and a handler of scrapes; outputs
// are JSON and the Problems of its own ports. It must not know how answers are computed (no State, no
// kernel), nor who may be a peer. A request costs only
// what its answer needs: see Source.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

// metricsRetry is how long the server waits before it retries a port that was in use.
const metricsRetry = 5 * time.Second

// Source has the current answers. It may be called at any time from any goroutine, and does not
// wait for the kernel to be programmed. The caller owns what it returns.
type Source interface {
	// Ready costs the same in a clusterset of any size: the kubelet asks every 2 s.
	Ready() api.Readiness
	// Status, Services and Nodes are computed when called; nil before the first plan.
	Status() *api.Status
	Services() *api.ServiceList
	Nodes() *api.NodeList
	// Tunnels lists the tunnels of one node, "CLUSTER/NODE", or of all for "". Those of all can be as
	// many as pairs of nodes, and are refused if there are too many nodes for that.
	Tunnels(of string) (*api.TunnelList, error)
	MemberList() *api.MemberList
	Peers() *api.PeerList
	// Flows and TrafficList tell who calls whom from this node: one service, or all for "". They look at
	// all sockets of the machine. The error is why that is not possible.
	Flows(ctx context.Context, service string) (*api.FlowList, error)
	TrafficList(ctx context.Context) (*api.TrafficList, error)
	// PolicyList lists the cluster's policies; nil while the daemon starts.
	PolicyList() *api.PolicyList
	// MirrorOf returns the policy by which a Service, as NAMESPACE/NAME, is a mirror, and its sources, as
	// CLUSTER/NAMESPACE/NAME; empty if it is none.
	MirrorOf(service string) (policy string, sources []string)
	// ServicesFrom lists the services as another node would use them: "NODE", "CLUSTER/NODE", or ""
	// for this one.
	ServicesFrom(node string) (*api.ServiceList, error)
	// ServicesAt lists the services as they were at a moment, for this node or another. The error is an
	// *api.Unnoted if nothing is noted of it.
	ServicesAt(at time.Time, node string) (*api.ServiceList, error)
	// History returns what changed and why; nil before the first plan.
	History(q api.HistoryQuery) (*api.History, error)
	// Logs returns the last lines of the daemon's log.
	Logs() *api.LogList
	// WhatIf returns where connections would go after a change, to one service or to all.
	WhatIf(change, service, from string) (*api.WhatIf, error)
	// Ping asks a node, pod or service for an answer. It takes a second or two, and is refused if there
	// are many at once.
	Ping(ctx context.Context, to string) (*api.Ping, error)
}

// ErrBusy is what a Source returns for what it does only so often.
var ErrBusy = problem.Refuse("ask again in a few seconds", "straitd answers only a few such queries at a time")

// Config is where the API listens.
type Config struct {
	// Socket is the path of the unix socket. Its directory is created with mode 0700 if it does not
	// exist.
	Socket string
	// View is the path of another unix socket, with the same answers, for root and the group with the ID
	// ViewGroup; empty if there is none. Its directory is for this socket alone.
	View      string
	ViewGroup int
	// Metrics is the TCP address for /metrics, /healthz and /readyz; the zero value is off.
	Metrics netip.AddrPort
	// Scrape answers /metrics; nil if there are no metrics.
	Scrape http.Handler
	// Peers are the nodes of the cluster, for queries with node=NODE; nil if there is only this one.
	Peers Peers
	// Log may be nil.
	Log *slog.Logger
}

// Server answers the CLI on a unix socket, and Prometheus and the kubelet on TCP.
type Server struct {
	cfg   Config
	src   Source
	log   *slog.Logger
	retry time.Duration
	peers *http.Transport // asks Config.Peers
	// handed has the connections of other nodes.
	handed *handed

	socket *local
	view   *local // nil if there is none

	mu      sync.Mutex
	problem *problem.Problem // of the metrics port
	bound   netip.AddrPort
}

// New makes a server that answers from src.
func New(cfg Config, src Source) *Server {
	s := &Server{cfg: cfg, src: src, log: cfg.Log, retry: metricsRetry, peers: newTransport(cfg.Peers), handed: newHanded()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.socket = &local{path: cfg.Socket, log: s.log}
	if cfg.View != "" {
		s.view = &local{path: cfg.View, group: cfg.ViewGroup, log: s.log}
	}
	if s.cfg.Scrape == nil {
		s.cfg.Scrape = http.NotFoundHandler()
	}
	return s
}

// Listen takes the socket, which ensures that no other straitd with the same run directory is
// alive. Call it before anything that two daemons must not do at once; otherwise Run calls it. Run
// must follow.
func (s *Server) Listen(ctx context.Context) error { return s.socket.listen(ctx) }

// Run serves until ctx ends. It fails if it cannot take the socket, usually because another straitd
// holds it. A metrics port that it cannot take is a Problem and is retried.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Listen(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer s.handed.Close()
	wg.Go(func() { _ = s.serve(ctx, s.handed, s.peerHandler()) }) // ends with ctx
	if s.cfg.Metrics.IsValid() {
		wg.Go(func() { s.serveMetrics(ctx) })
	}
	if s.view != nil {
		wg.Go(func() { s.serveView(ctx) })
	}
	s.log.Info("api is listening", "socket", s.cfg.Socket)
	err := s.socket.run(ctx, s.serve, s.localHandler())
	cancel()
	wg.Wait()
	return errors.Join(err, removeOwn(s.cfg.Socket, s.socket.file))
}

// serveView serves on the socket for a group until ctx ends. The daemon works without it, so
// failures are only logged.
func (s *Server) serveView(ctx context.Context) {
	if !s.view.relisten(ctx) {
		return
	}
	err := s.view.run(ctx, s.serve, s.localHandler())
	if err = errors.Join(err, removeOwn(s.view.path, s.view.file)); err != nil {
		s.log.Warn("the socket for views failed", "socket", s.view.path, "err", err)
	}
}

// serve runs one HTTP server until ctx ends. Answers in progress get a second to finish.
func (s *Server) serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(grace) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(l)
	if !stop() { // shutting down: Serve returns before the last answers are sent
		<-done
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve on %s: %w", l.Addr(), err)
}

// serveMetrics serves on TCP until ctx ends, and retries if it cannot listen.
func (s *Server) serveMetrics(ctx context.Context) {
	for ctx.Err() == nil {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.Metrics.String())
		if err == nil {
			s.setMetrics(l.Addr().(*net.TCPAddr).AddrPort(), nil)
			s.log.Info("metrics are listening", "address", l.Addr().String())
			err = s.serve(ctx, l, s.MetricsHandler())
		}
		if err != nil && ctx.Err() == nil {
			p := s.metricsProblem(err)
			s.setMetrics(netip.AddrPort{}, &p)
			s.log.Warn("metrics cannot listen", "address", s.cfg.Metrics.String(), "err", err, "again_in", s.retry)
		}
		select {
		case <-ctx.Done():
		case <-time.After(s.retry):
		}
	}
}

func (s *Server) metricsProblem(err error) problem.Problem {
	p := problem.Problem{
		Code:    problem.MetricsNotServed,
		Object:  "straitd configuration",
		Field:   "metrics.listen",
		Message: fmt.Sprintf("metrics, /healthz and /readyz are not served, everything else works: %v", err),
		Try:     fmt.Sprintf("configure an address that this node has; straitd tries again every %s", s.retry),
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		port := s.cfg.Metrics.Port()
		p.Message = fmt.Sprintf("%s is in use: metrics, /healthz and /readyz are not served, everything else works", s.cfg.Metrics)
		p.Try = fmt.Sprintf("find its owner (ss -ltnp 'sport = :%d') and stop it, or configure another port; "+
			"straitd tries again every %s", port, s.retry)
	}
	return p
}

func (s *Server) setMetrics(bound netip.AddrPort, p *problem.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bound, s.problem = bound, p
}

// MetricsAddr returns where metrics are served now; invalid if nowhere. If port 0 is configured, it
// has the actual port.
func (s *Server) MetricsAddr() netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bound
}

// Problems returns the server's own Problems. The server's Status includes them, so the source's
// Status may have them too but need not.
func (s *Server) Problems() []problem.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem == nil {
		return nil
	}
	return []problem.Problem{*s.problem}
}

// Status returns the source's status plus the server's own Problems, each once.
func (s *Server) Status() *api.Status {
	status := s.src.Status()
	own := s.Problems()
	if status == nil || len(own) == 0 {
		return status
	}
	out := *status
	out.Problems = problem.Sort(slices.Concat(status.Problems, own))
	return &out
}
