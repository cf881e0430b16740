package sockdestroy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// Config says where the sockets are known from. Records is the only field that must be set.
type Config struct {
	// Records returns what the load balancer remembers now.
	Records func() ([]Record, error)
	Policy  Policy
	// ProcFS is where the machine's proc(5) is mounted, with the processes of all pods; empty is /proc.
	ProcFS string
	// Log gets what was destroyed, and what could not be; nil is silent.
	Log *slog.Logger
}

// Result is what one call of Destroy did.
type Result struct {
	// UDP and TCP are sockets destroyed.
	UDP, TCP int
	// Namespaces is how many network namespaces were searched: 0 if nothing is stale.
	Namespaces int
	// Left are stale records whose socket was found in no namespace, has no peer (yet), or could not be
	// destroyed. What cannot be found is given up after a few times, and then no longer counts.
	Left int
	// Again is in how long to call again because of those that are left, even without a change; 0 is no need to, or
	// an error, after which when to try again is the caller's to say.
	Again time.Duration
}

// Destroyer destroys stale sockets. Its methods are safe for concurrent use.
type Destroyer struct {
	cfg   Config
	now   func() time.Time
	grace func()

	mu     sync.Mutex
	method method // nil until needed
	looked looked
}

// New returns a Destroyer, without any I/O.
func New(cfg Config) *Destroyer {
	if cfg.ProcFS == "" {
		cfg.ProcFS = "/proc"
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Destroyer{cfg: cfg, now: time.Now, grace: awaitHooks, looked: looked{}}
}

// Close frees what the kernel holds for the Destroyer, which may be used again after.
func (d *Destroyer) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.method == nil {
		return nil
	}
	err := d.method.close()
	d.method = nil
	return err
}

// pauses are between the tries of one call. A record is written before connect() is through: for a moment
// its socket is still without a peer, and would be missed.
var pauses = []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond}

// Destroy destroys the sockets that are stale now: call it after each change that removes a backend. want
// must be what the maps hold, not what they should hold: a frontend that is missing in want counts as
// removed. It takes an RCU grace period (some 10 ms asleep) even if nothing is stale. The error tells what
// could not be looked at; what could be was.
func (d *Destroyer) Destroy(ctx context.Context, want []datapath.Frontend, gone []netip.Addr) (Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.destroy(ctx, want, gone)
	if err != nil {
		return r, fmt.Errorf("destroy stale sockets: %w", err)
	}
	return r, nil
}

func (d *Destroyer) destroy(ctx context.Context, want []datapath.Frontend, gone []netip.Addr) (r Result, err error) {
	d.grace()
	stale, err := d.stale(want, gone)
	if err != nil {
		return r, err
	}
	todo, waiting := d.looked.due(stale, d.now())
	for i, pause := range pauses {
		if len(todo) == 0 {
			break
		}
		if i > 0 {
			if err = sleep(ctx, pause); err != nil {
				break
			}
			if stale, err = d.stale(want, gone); err != nil {
				break
			}
			// A socket that is closed, or has connected elsewhere, has another record or none.
			todo = both(todo, stale)
		}
		if todo, err = d.search(ctx, todo, &r); err != nil {
			break
		}
	}
	if err == nil {
		d.looked.missed(todo, d.now())
		r.Again = d.looked.soonest(d.now())
	}
	r.Left = len(todo) + waiting
	return r, err
}

func (d *Destroyer) stale(want []datapath.Frontend, gone []netip.Addr) ([]Target, error) {
	records, err := d.cfg.Records()
	if err != nil {
		return nil, fmt.Errorf("read records of sockets: %w", err)
	}
	return Stale(records, want, gone, d.cfg.Policy), nil
}

// search goes once through the namespaces and returns the targets that are still to be dealt with.
func (d *Destroyer) search(ctx context.Context, todo []Target, r *Result) (left []Target, err error) {
	if len(todo) == 0 {
		return nil, nil
	}
	if d.method == nil {
		d.method = choose(d.cfg.Log)
	}
	spaces, unread := namespaces(d.cfg.ProcFS)
	var errs []error
	for part := range slices.Chunk(todo, maxTargets) {
		rest, err := d.hunt(ctx, spaces, part, r)
		left = append(left, rest...)
		errs = append(errs, err)
	}
	if len(left) > 0 {
		errs = append(errs, unread)
	}
	return left, errors.Join(errs...)
}

// hunt is search for as many targets as a method takes at once.
func (d *Destroyer) hunt(ctx context.Context, spaces []namespace, todo []Target, r *Result) (left []Target, err error) {
	if err := d.method.begin(todo); err != nil {
		return todo, err
	}
	n, err := visit(ctx, d.cfg.ProcFS, spaces, d.method.here)
	r.Namespaces += n
	outcomes, err2 := d.method.end()
	errs := []error{err, err2}
	for _, t := range todo {
		o := outcomes[t.Cookie]
		switch o.verdict {
		case destroyed:
			r.count(t)
			d.looked.settled(t, d.now())
			d.cfg.Log.Debug("destroyed stale socket", "cookie", t.Cookie, "proto", t.Proto, "backend", t.Peer)
		case elsewhere:
			d.looked.settled(t, d.now())
		default:
			left = append(left, t)
			errs = append(errs, o.err)
		}
	}
	return left, errors.Join(errs...)
}

func (r *Result) count(t Target) {
	if t.Proto == l4.TCP {
		r.TCP++
	} else {
		r.UDP++
	}
}

// again is how soon a target is looked for anew that was looked for in vain once, twice, and more often. A thread that
// was interrupted amid its connect() is soon through; a socket that nobody can find is not worth much.
var again = []time.Duration{200 * time.Millisecond, 5 * time.Second, 10 * time.Second}

// giveUp is after how many times in vain a target counts as dealt with.
var giveUp = len(again)

// looked remembers what was looked for. The record of a destroyed socket stays until the client notices,
// and the record of one that is in no namespace may stay for ever: without this each would cost every
// later call a walk through all namespaces.
type looked map[Target]look

type look struct {
	at     time.Time
	misses int // 1 or more; giveUp: dealt with
}

// next is when to look again.
func (l look) next() time.Time { return l.at.Add(again[l.misses-1]) }

func (l looked) settled(t Target, now time.Time) { l[t] = look{now, giveUp} }

func (l looked) missed(ts []Target, now time.Time) {
	for _, t := range ts {
		l[t] = look{now, min(l[t].misses+1, giveUp)}
	}
}

// due returns the stale targets that were not looked for just now, and the number of those that were, in
// vain. It forgets those that are stale no longer: the same socket may come to the same backend again.
func (l looked) due(stale []Target, now time.Time) (due []Target, waiting int) {
	still := make(map[Target]bool, len(stale))
	for _, t := range stale {
		still[t] = true
		before, ok := l[t]
		switch {
		case !ok || !now.Before(before.next()):
			due = append(due, t)
		case before.misses < giveUp:
			waiting++
		}
	}
	for t := range l {
		if !still[t] {
			delete(l, t)
		}
	}
	return due, waiting
}

// soonest returns in how long a target is to be looked for again; 0 if none is.
func (l looked) soonest(now time.Time) (first time.Duration) {
	for _, look := range l {
		if look.misses >= giveUp {
			continue
		}
		if wait := max(look.next().Sub(now), time.Millisecond); first == 0 || wait < first {
			first = wait
		}
	}
	return first
}

// both returns what is in a and in b.
func both(a, b []Target) []Target {
	in := make(map[Target]bool, len(b))
	for _, t := range b {
		in[t] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(t Target) bool { return !in[t] })
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
