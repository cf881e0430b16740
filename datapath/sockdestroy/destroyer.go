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

// Config is where records of sockets and processes are found. Only Records must be set.
type Config struct {
	// Records returns what the load balancer remembers at the time of the call.
	Records func() ([]Record, error)
	Policy  Policy
	// ProcFS is where the machine's proc(5) is mounted, with the processes of all pods; empty means
	// /proc.
	ProcFS string
	// Log receives what was destroyed and which method is used; nil discards it.
	Log *slog.Logger
}

// Result is what one call of Destroy did.
type Result struct {
	// UDP and TCP are the numbers of sockets destroyed.
	UDP, TCP int
	// Namespaces is how many network namespaces were entered, counted once per search; 0 if nothing
	// is stale.
	Namespaces int
	// Left is the number of stale records whose socket was found in no namespace, has no peer
	// (yet), or could not be destroyed. A record whose socket was missed a few times is given up:
	// it then counts only in a call that looks for it again, at most every 10 s.
	Left int
	// Again is after how long to call again because of those that are left, even without a change.
	// It is 0 if there is no need to, or on an error: then the caller decides when to try again.
	Again time.Duration
}

// Destroyer destroys stale sockets. Its methods are safe for concurrent use.
type Destroyer struct {
	cfg   Config
	now   func() time.Time
	grace func()

	mu     sync.Mutex
	method method // nil until it is needed
	looked looked
}

// New returns a Destroyer. It does no I/O.
func New(cfg Config) *Destroyer {
	if cfg.ProcFS == "" {
		cfg.ProcFS = "/proc"
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Destroyer{cfg: cfg, now: time.Now, grace: awaitHooks, looked: looked{}}
}

// Close frees what the kernel holds for the Destroyer, which can be used again afterwards.
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

// pauses are the pauses before the tries of one call. The record is written before connect()
// completes: for a moment its socket has no peer yet, and would be missed.
var pauses = []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond}

// Destroy destroys the sockets that are stale now: call it after each change that removes a
// backend from keep, which is what Grace.Keep makes of the frontends that the maps hold. A frontend
// that is missing in keep counts as removed. Destroy waits for an RCU grace period (asleep for some 10 ms) even if
// nothing is stale.
//
// The error names what could not be searched or destroyed; everything else was.
func (d *Destroyer) Destroy(ctx context.Context, keep []datapath.Frontend, gone []netip.Addr) (Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.destroy(ctx, keep, gone)
	if err != nil {
		return r, fmt.Errorf("destroy stale sockets: %w", err)
	}
	return r, nil
}

func (d *Destroyer) destroy(ctx context.Context, keep []datapath.Frontend, gone []netip.Addr) (r Result, err error) {
	d.grace()
	stale, err := d.stale(keep, gone)
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
			if stale, err = d.stale(keep, gone); err != nil {
				break
			}
			// A socket that was closed or has connected elsewhere has no record, or another one.
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

func (d *Destroyer) stale(keep []datapath.Frontend, gone []netip.Addr) ([]Target, error) {
	records, err := d.cfg.Records()
	if err != nil {
		return nil, fmt.Errorf("read socket records: %w", err)
	}
	return Stale(records, keep, gone, d.cfg.Policy), nil
}

// search goes through the namespaces once and returns the targets without a final verdict.
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

// hunt is search for at most as many targets as a method takes at once.
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

// again is how soon to look again for a target that was missed once, twice, and more often. A
// thread that was interrupted during its connect() completes soon; a socket that is never found is
// not worth much effort.
var again = []time.Duration{200 * time.Millisecond, 5 * time.Second, 10 * time.Second}

// giveUp is after how many misses a target counts as dealt with.
var giveUp = len(again)

// looked remembers which targets were looked for. The record of a destroyed socket stays until the
// client notices, and the record of a socket that is in no namespace can stay forever. Without
// looked, each of them would cost every later call a walk through all namespaces.
type looked map[Target]look

type look struct {
	at     time.Time
	misses int // 1 or more; giveUp: dealt with
}

// next returns when to look again.
func (l look) next() time.Time { return l.at.Add(again[l.misses-1]) }

func (l looked) settled(t Target, now time.Time) { l[t] = look{now, giveUp} }

func (l looked) missed(ts []Target, now time.Time) {
	for _, t := range ts {
		l[t] = look{now, min(l[t].misses+1, giveUp)}
	}
}

// due returns the stale targets to look for now, and the number of those that were missed recently
// and must wait. It forgets targets that are no longer stale, because the same socket can connect
// to the same backend again.
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

// soonest returns after how long the next target is to be looked for again; 0 if there is none.
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

// both returns the targets that are in a and in b.
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
