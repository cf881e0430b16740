package daemon

import (
	"context"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/turn"
	"strait.io/strait/datapath"
	"strait.io/strait/datapath/sockdestroy"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/problem"
)

// stale closes sockets to backends that their frontends have lost, so that clients reconnect. A
// backend that is still there, but not ready, keeps its sockets for a grace period.
type stale struct {
	destroyer *sockdestroy.Destroyer
	grace     *sockdestroy.Grace
	udp, tcp  atomic.Uint64
	now       func() time.Time
	begun     time.Time           // when the first exact plan of this life was in force
	passed    bool                // there was a pass in this life
	last      []datapath.Frontend // what sockets could stay with after the last pass
	gone      []netip.Addr
	left      bool          // some sockets could not be closed yet
	wait      time.Duration // delay before the next run; 0 if none is needed
}

// trust is how long a life of the daemon waits for records of others before it trusts those that an
// earlier life saved: by then, no newer ones can be expected.
const trust = turn.Resync

func newStale(k *kernel, c BPFConfig) *stale {
	return &stale{now: time.Now, grace: sockdestroy.NewGrace(c.unreadyGrace()), destroyer: sockdestroy.New(sockdestroy.Config{
		Records: k.records,
		Policy:  sockdestroy.Policy{TCP: c.DestroyTCP},
		Log:     k.log.With("part", "sockdestroy"),
	})}
}

func (s *stale) name() string         { return "sockdestroy" }
func (s *stale) again() time.Duration { return s.wait }

func (s *stale) same(a, b want) bool {
	return datapath.SameList(a.Frontends, b.Frontends) && slices.Equal(a.Gone, b.Gone) && a.settled == b.settled
}

// prune closes stale sockets once what is wanted is in force. It looks for them only when there can
// be some: once in each life of the daemon, because backends may have left before; and then when
// sockets may no longer stay with a backend, a machine died, or an earlier pass left some open.
func (s *stale) prune(ctx context.Context, j job) ([]problem.Problem, error) {
	if s.wait = s.early(j.settled); s.wait > 0 {
		return nil, nil
	}
	died := slices.ContainsFunc(j.Gone, func(a netip.Addr) bool { return !slices.Contains(s.gone, a) })
	keep, next := s.grace.Keep(j.Frontends, s.now())
	look := !s.passed || s.left || died || lost(s.last, keep)
	s.passed, s.last, s.gone, s.wait = true, keep, j.Gone, next
	if !look {
		return nil, nil
	}
	r, err := s.destroyer.Destroy(ctx, keep, j.Gone)
	if r.Again > 0 && (next == 0 || r.Again < next) {
		s.wait = r.Again
	}
	s.udp.Add(uint64(r.UDP))
	s.tcp.Add(uint64(r.TCP))
	s.left = r.Left > 0 || err != nil
	return nil, err
}

// early returns how long to wait for a settled plan before the first pass. A backend that joined
// just before a crash may be missing in what was saved, and its sockets are right.
func (s *stale) early(settled bool) time.Duration {
	if s.passed || settled {
		return 0
	}
	if s.begun.IsZero() {
		s.begun = s.now()
	}
	return max(0, trust-s.now().Sub(s.begun))
}

// lost reports whether a frontend that was in force is gone or has lost a backend. Both lists and
// their backends are sorted, because plans are, and they usually share their lists of backends.
func lost(was, is []datapath.Frontend) bool {
	for _, f := range was {
		for len(is) > 0 && is[0].Addr.Compare(f.Addr) < 0 {
			is = is[1:]
		}
		if len(is) == 0 || is[0].Addr != f.Addr {
			return true
		}
		if now := is[0].Backends; !datapath.SameList(f.Backends, now) && slices.ContainsFunc(f.Backends, func(b datapath.Backend) bool {
			_, has := slices.BinarySearchFunc(now, b, datapath.Backend.Compare)
			return !has
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
