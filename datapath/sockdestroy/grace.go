package sockdestroy

import (
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// DefaultGrace is how long sockets stay with a pod that is not ready, unless the configuration says
// otherwise: long enough for a probe that fails once or twice, short enough for a client that waits
// for an answer.
const DefaultGrace = 10 * time.Second

// Grace decides which backends sockets may stay with, besides those that get new connections. It
// remembers since when each pod has not been ready. It does no I/O, and does not read the clock.
type Grace struct {
	period time.Duration
	since  map[seat]time.Time
}

// seat is an endpoint behind a frontend.
type seat struct {
	frontend l4.Addr
	endpoint netip.AddrPort
}

// NewGrace returns a Grace that gives a pod the period to be ready again; 0 means none.
func NewGrace(period time.Duration) *Grace { return &Grace{period: period} }

// Keep returns the frontends with all backends that sockets may stay with now, and after how long
// that changes although nothing else does; 0 if it does not. Besides its backends, a frontend keeps
//
//   - its endpoints that are ready and idle, for as long as they are;
//   - those that are not ready, for a grace period. It begins with the first call that sees them
//     so, and ends early if they leave.
//
// What is in neither list of a frontend has left. A new Grace, as in a new life of the daemon, has
// seen nothing yet, so the period begins again.
func (g *Grace) Keep(frontends []datapath.Frontend, now time.Time) (keep []datapath.Frontend, next time.Duration) {
	since := map[seat]time.Time{}
	keep = frontends
	for i, f := range frontends {
		more, wait := g.stay(f, now, since)
		if wait > 0 && (next == 0 || wait < next) {
			next = wait
		}
		if len(more) == 0 {
			continue
		}
		if &keep[0] == &frontends[0] {
			keep = slices.Clone(frontends)
		}
		keep[i].Backends = datapath.SortBackends(append(more, f.Backends...))
	}
	g.since = since
	return keep, next
}

// stay returns the idle endpoints of a frontend that sockets may stay with, and after how long the
// first of them may not. It writes to since which of them are not ready.
func (g *Grace) stay(f datapath.Frontend, now time.Time, since map[seat]time.Time) (more []datapath.Backend, next time.Duration) {
	for _, e := range f.Idle {
		if e.Unready {
			s := seat{f.Addr, e.Addr}
			at, known := g.since[s]
			if !known {
				at = now
			}
			since[s] = at
			left := g.period - now.Sub(at)
			if left <= 0 {
				continue
			}
			if next == 0 || left < next {
				next = left
			}
		}
		more = append(more, datapath.Backend{IP: e.Addr.Addr(), Port: e.Addr.Port(), Weight: 1})
	}
	return more, next
}
