package stream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"

	"strait.io/strait/internal/l4"
)

// Bounds on requests for statements. A desk holds at most maxAsking connections, and maxAskingPerSource
// of one source. Of those whose request is here, maxSigning are answered at once, maxStrangers of them
// for peers of which nothing is known: an answer may take the signer's API server.
const (
	maxAsking          = 128
	maxAskingPerSource = 32
	maxSigning         = 16
	maxStrangers       = 8
)

// desk decides whose request for a statement is answered when. A connection whose request is not here
// takes no more than room, and has to go when a better one lacks that: first strangers go before known
// peers, then those that have sent nothing, of the source that has most of them, the oldest. Of those
// whose request is here, known peers come first, then the oldest; no source and no key is answered twice
// at once, but for known peers, whose key is one that a node has. A desk decides, and reads nothing.
type desk struct {
	mu      sync.Mutex
	here    []*asker // the oldest first
	signing int
	strange int // of signing
}

// asker is a connection at a desk.
type asker struct {
	conn   net.Conn
	source netip.Prefix
	known  bool
	key    Key
	asked  bool          // the request is here
	served bool          // it is being answered
	turn   chan struct{} // closed when it may be answered, or has to go
}

// errBusy ends a request for which there is no room.
var errBusy = errors.New("too many requests at once")

// enter lets a connection ask. It returns the one that must go, which can be the new one, if there is no
// room.
func (d *desk) enter(conn net.Conn, from netip.Addr, known bool) (in, out *asker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	in = &asker{conn: conn, source: l4.Source(from), known: known, turn: make(chan struct{})}
	d.here = append(d.here, in)
	mine := func(a *asker) bool { return a.source == in.source }
	switch {
	case d.count(mine) > maxAskingPerSource:
		out = d.worst(mine)
	case len(d.here) > maxAsking:
		out = d.worst(func(*asker) bool { return true })
	}
	if out != nil {
		d.here = slices.DeleteFunc(d.here, func(a *asker) bool { return a == out })
		close(out.turn)
	}
	return in, out
}

func (d *desk) count(which func(*asker) bool) (n int) {
	for _, a := range d.here {
		if which(a) {
			n++
		}
	}
	return n
}

// worst returns which of some connections must go: none that is being answered.
func (d *desk) worst(which func(*asker) bool) (worst *asker) {
	sizes := map[netip.Prefix]int{}
	for _, a := range d.here {
		sizes[a.source]++
	}
	worse := func(a, b *asker) bool {
		switch {
		case a.known != b.known:
			return !a.known
		case a.asked != b.asked:
			return !a.asked
		}
		return sizes[a.source] > sizes[b.source]
	}
	for _, a := range d.here {
		if which(a) && !a.served && (worst == nil || worse(a, worst)) {
			worst = a
		}
	}
	return worst
}

// ask notes that a request is here, signed with a key, and waits until it may be answered. The caller
// must call leave, whatever comes of it.
func (d *desk) ask(ctx context.Context, a *asker, key Key) error {
	d.mu.Lock()
	if !slices.Contains(d.here, a) {
		d.mu.Unlock()
		return errBusy
	}
	a.asked, a.key = true, key
	d.next()
	d.mu.Unlock()
	select {
	case <-a.turn:
		d.mu.Lock()
		defer d.mu.Unlock()
		if !a.served {
			return errBusy
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave frees what a connection took.
func (d *desk) leave(a *asker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.here = slices.DeleteFunc(d.here, func(b *asker) bool { return a == b })
	if !a.served {
		return
	}
	a.served = false
	if d.signing--; !a.known {
		d.strange--
	}
	d.next()
}

// next gives a turn to all that may have one now. The lock is held.
func (d *desk) next() {
	for _, known := range []bool{true, false} {
		for _, a := range d.here {
			if a.known != known || !a.asked || a.served || !d.may(a) {
				continue
			}
			a.served = true
			if d.signing++; !a.known {
				d.strange++
			}
			close(a.turn)
		}
	}
}

func (d *desk) may(a *asker) bool {
	if d.signing >= maxSigning || !a.known && d.strange >= maxStrangers {
		return false
	}
	return !slices.ContainsFunc(d.here, func(b *asker) bool {
		return b.served && (b.key == a.key || !a.known && !b.known && b.source == a.source)
	})
}
