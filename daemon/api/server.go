package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"strait.io/strait/internal/problem"
)

// metricsRetry is how long the server waits before it tries a port that was in use again.
const metricsRetry = 5 * time.Second

// Source has the present answers. It may be asked at any time from any goroutine, and does not wait for the
// kernel to be programmed. What it returns is the caller's.
type Source interface {
	// Ready costs the same however large the clusterset is: the kubelet asks every 2 s.
	Ready() Readiness
	// Status, Services and Nodes are worked out when asked for; nil before the first plan.
	Status() *Status
	Services() *ServiceList
	Nodes() *NodeList
}

// Counts are what a scrape needs besides the status.
type Counts interface {
	// Members counts the nodes of the clusterset by what gossip knows of them: "alive" (this node included), "quiet",
	// "silent", "held"; or "dead". States without nodes may be missing.
	Members() map[string]int
	// Writes counts the writes to the API server that were tried in this life of the daemon.
	Writes() []Written
	// Traffic calls each for every frontend of every service. The backends are valid until each returns.
	Traffic(each func(Traffic))
}

// Daemon answers everything.
type Daemon interface {
	Source
	Counts
}

// Config says where the API listens.
type Config struct {
	// Socket is the path of the unix socket. Its directory is made 0700 if there is none.
	Socket string
	// Metrics is the TCP address for /metrics, /healthz and /readyz; the zero value is off.
	Metrics netip.AddrPort
	// Log may be nil.
	Log *slog.Logger
}

// Server answers the CLI on a unix socket, and Prometheus and the kubelet on TCP.
type Server struct {
	cfg     Config
	src     Daemon
	metrics *Metrics
	log     *slog.Logger
	retry   time.Duration

	listener net.Listener // once Listen has been called
	file     fs.FileInfo  // of the socket

	mu      sync.Mutex
	problem *problem.Problem // of the metrics port
	bound   netip.AddrPort
}

// New makes a server that answers from src and counts in m, which may be nil.
func New(cfg Config, src Daemon, m *Metrics) *Server {
	s := &Server{cfg: cfg, src: src, metrics: m, log: cfg.Log, retry: metricsRetry}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.metrics == nil {
		s.metrics = NewMetrics()
	}
	s.metrics.observe(s, src)
	return s
}

// Listen takes the socket and so makes sure that no other straitd of the same run directory is alive. Call
// it before anything that two daemons must not do at once; Run does it otherwise. Run must follow.
func (s *Server) Listen(ctx context.Context) (err error) {
	if s.listener != nil {
		return nil
	}
	l, err := listenUnix(ctx, s.cfg.Socket)
	if err != nil {
		return err
	}
	if s.file, err = os.Lstat(s.cfg.Socket); err != nil {
		l.Close()
		return fmt.Errorf("look at the new socket: %w", err)
	}
	s.listener = l
	return nil
}

// Run serves until ctx ends. It is an error if the socket cannot be had, most of all when another straitd
// holds it. A metrics port that cannot be had is a Problem; it is tried again until it can.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Listen(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	if s.cfg.Metrics.IsValid() {
		wg.Go(func() { s.serveMetrics(ctx) })
	}
	s.log.Info("api listens", "socket", s.cfg.Socket)
	err := s.serve(ctx, s.listener, s.localHandler())
	cancel()
	wg.Wait()
	return errors.Join(err, removeOwn(s.cfg.Socket, s.file))
}

// serve runs one HTTP server until ctx ends; answers under way get a second to finish.
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
	if !stop() { // shutting down: Serve returns before the last answers are out
		<-done
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve on %s: %w", l.Addr(), err)
}

// serveMetrics serves on TCP as soon and as long as it can.
func (s *Server) serveMetrics(ctx context.Context) {
	for ctx.Err() == nil {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.Metrics.String())
		if err == nil {
			s.setMetrics(l.Addr().(*net.TCPAddr).AddrPort(), nil)
			s.log.Info("metrics listen", "address", l.Addr().String())
			err = s.serve(ctx, l, s.MetricsHandler())
		}
		if err != nil && ctx.Err() == nil {
			p := s.metricsProblem(err)
			s.setMetrics(netip.AddrPort{}, &p)
			s.log.Warn("metrics do not listen", "address", s.cfg.Metrics.String(), "err", err, "again_in", s.retry)
		}
		select {
		case <-ctx.Done():
		case <-time.After(s.retry):
		}
	}
}

func (s *Server) metricsProblem(err error) problem.Problem {
	p := problem.Problem{
		Object:  "straitd configuration",
		Field:   "metrics.listen",
		Message: fmt.Sprintf("metrics, /healthz and /readyz are not served, the rest works: %v", err),
		Try:     fmt.Sprintf("configure an address that this node has; straitd tries again every %s", s.retry),
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		port := s.cfg.Metrics.Port()
		p.Message = fmt.Sprintf("%s is in use: metrics, /healthz and /readyz are not served, the rest works", s.cfg.Metrics)
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

// MetricsAddr is where metrics are served now; invalid if nowhere. With port 0 configured it has the real one.
func (s *Server) MetricsAddr() netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bound
}

// Problems are the server's own. They are also in the server's answers, so adding them to the Status is
// right but not needed.
func (s *Server) Problems() []problem.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem == nil {
		return nil
	}
	return []problem.Problem{*s.problem}
}

// Status is the source's with the server's own problems in it, each once.
func (s *Server) Status() *Status {
	status := s.src.Status()
	own := s.Problems()
	if status == nil || len(own) == 0 {
		return status
	}
	out := *status
	out.Problems = slices.Clone(status.Problems)
	for _, p := range own {
		if !slices.Contains(out.Problems, p) {
			out.Problems = append(out.Problems, p)
		}
	}
	return &out
}
