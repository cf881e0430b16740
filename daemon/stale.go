package daemon

import (
	"context"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath"
	"strait.io/strait/datapath/sockdestroy"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/problem"
)

// stale closes sockets to backends that their frontends have lost, so that clients reconnect.
type stale struct {
	destroyer *sockdestroy.Destroyer
	udp, tcp  atomic.Uint64
	now       func() time.Time
	begun     time.Time           // when the first exact plan of this life was in force
	passed    bool                // there was a pass in this life
	last      []datapath.Frontend // what was in force after the last pass
	gone      []netip.Addr
	left      bool          // some sockets could not be closed yet
	wait      time.Duration // delay before the next run; 0 if none is needed
}

// trust is how long a life of the daemon waits to hear from others before it believes what an
// earlier life saved: nobody else can say more.
const trust = resync

func newStale(k *kernel, tcp sockdestroy.TCPPolicy) *stale {
	return &stale{now: time.Now, destroyer: sockdestroy.New(sockdestroy.Config{
		Records: k.records,
		Policy:  sockdestroy.Policy{TCP: tcp},
		Log:     k.log.With("part", "sockdestroy"),
	})}
}

func (s *stale) name() string         { return "sockdestroy" }
func (s *stale) again() time.Duration { return s.wait }

func (s *stale) same(a, b want) bool {
	return sameList(a.Frontends, b.Frontends) && slices.Equal(a.Gone, b.Gone) && a.settled == b.settled
}

// prune closes stale sockets once what is wanted is in force. It looks for them only when there can
// be some: once in each life of the daemon, because backends may have left before; and then when a
// frontend lost a backend, a machine died, or an earlier pass left some open.
func (s *stale) prune(ctx context.Context, j job) ([]problem.Problem, error) {
	if s.wait = s.early(j.settled); s.wait > 0 {
		return nil, nil
	}
	died := slices.ContainsFunc(j.Gone, func(a netip.Addr) bool { return !slices.Contains(s.gone, a) })
	if s.passed && !s.left && !died && !lost(s.last, j.Frontends) {
		s.last, s.gone = j.Frontends, j.Gone
		return nil, nil
	}
	r, err := s.destroyer.Destroy(ctx, j.Frontends, j.Gone)
	s.wait = r.Again
	s.udp.Add(uint64(r.UDP))
	s.tcp.Add(uint64(r.TCP))
	s.passed, s.last, s.gone, s.left = true, j.Frontends, j.Gone, r.Left > 0 || err != nil
	return nil, err
}

// early returns how long to wait for a settled plan before the first pass. A backend that joined just
// before a crash may be missing in what was saved, and its sockets are right.
func (s *stale) early(settled bool) time.Duration {
	if s.passed || settled {
		return 0
	}
	if s.begun.IsZero() {
		s.begun = s.now()
	}
	return max(0, trust-s.now().Sub(s.begun))
}

// lost reports whether a frontend that was in force is gone or has lost a backend. Both lists are
// sorted, because plans are, and they usually share their lists of backends.
func lost(was, is []datapath.Frontend) bool {
	for _, f := range was {
		for len(is) > 0 && is[0].Addr.Compare(f.Addr) < 0 {
			is = is[1:]
		}
		if len(is) == 0 || is[0].Addr != f.Addr {
			return true
		}
		if now := is[0].Backends; !sameList(f.Backends, now) && slices.ContainsFunc(f.Backends, func(b datapath.Backend) bool {
			return !slices.ContainsFunc(now, func(c datapath.Backend) bool { return c.AddrPort() == b.AddrPort() })
		}) {
			return true
		}
	}
	return false
}

// records returns what the load balancer recorded about sockets.
func (k *kernel) records() ([]sockdestroy.Record, error) {
	r, err := inspect.OpenReader(k.config.BPF.Pins)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	rows, err := r.Sockets()
	out := make([]sockdestroy.Record, 0, len(rows))
	for _, x := range rows {
		out = append(out, sockdestroy.Record{
			Cookie: x.Cookie, Proto: x.Proto, Frontend: x.Frontend, Backend: x.Backend, Connected: x.Connected,
		})
	}
	return out, err
}

// destroyed returns how many sockets were closed since the daemon started.
func (s *stale) destroyed() api.Destroyed {
	return api.Destroyed{UDP: s.udp.Load(), TCP: s.tcp.Load()}
}
