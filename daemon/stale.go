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
	"strait.io/strait/internal/l4"
)

// stale closes sockets to backends that their frontends have lost, so that clients connect anew.
type stale struct {
	destroyer *sockdestroy.Destroyer
	udp, tcp  atomic.Uint64
	last      []datapath.Frontend // what was in force after the last pass
	gone      []netip.Addr
	left      bool          // some sockets could not be closed yet
	again     time.Duration // in how long to pass again because of them; 0 is no need to
}

func newStale(k *kernel, tcp sockdestroy.TCPPolicy) *stale {
	return &stale{destroyer: sockdestroy.New(sockdestroy.Config{
		Records: k.records,
		Policy:  sockdestroy.Policy{TCP: tcp},
		Log:     k.log.With("part", "sockdestroy"),
	})}
}

// pass closes what is stale, when want is what is in force. It looks only when there can be something: when a frontend lost a backend, a
// machine died, or an earlier pass left something.
func (s *stale) pass(ctx context.Context, want datapath.Desired) error {
	s.again = 0
	died := slices.ContainsFunc(want.Gone, func(a netip.Addr) bool { return !slices.Contains(s.gone, a) })
	if !s.left && !died && !lost(s.last, want.Frontends) {
		s.last, s.gone = want.Frontends, want.Gone
		return nil
	}
	r, err := s.destroyer.Destroy(ctx, want.Frontends, want.Gone)
	s.again = r.Again
	s.udp.Add(uint64(r.UDP))
	s.tcp.Add(uint64(r.TCP))
	s.last, s.gone, s.left = want.Frontends, want.Gone, r.Left > 0 || err != nil
	return err
}

// lost reports whether a frontend that was in force has gone or has lost a backend.
func lost(was, is []datapath.Frontend) bool {
	now := make(map[l4.Addr][]datapath.Backend, len(is))
	for _, f := range is {
		now[f.Addr] = f.Backends
	}
	return slices.ContainsFunc(was, func(f datapath.Frontend) bool {
		backends, ok := now[f.Addr]
		return !ok || slices.ContainsFunc(f.Backends, func(b datapath.Backend) bool {
			return !slices.ContainsFunc(backends, func(c datapath.Backend) bool { return c.AddrPort() == b.AddrPort() })
		})
	})
}

// records reads what the load balancer remembers of sockets.
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

// destroyed counts what was closed in this life of the daemon.
func (s *stale) destroyed() api.Destroyed {
	return api.Destroyed{UDP: s.udp.Load(), TCP: s.tcp.Load()}
}
