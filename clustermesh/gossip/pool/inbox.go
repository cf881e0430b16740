package pool

import (
	"net/netip"
	"sync"

	"strait.io/strait/internal/notify"
)

// inbox collects memberlist's events, and where its members are. memberlist delivers events with its
// lock held, so taking them must not block.
type inbox struct {
	mu     sync.Mutex
	events []Event
	addrs  map[netip.Addr]int // live members
	ready  notify.Signal
}

// Ready receives a value after new events.
func (i *inbox) Ready() <-chan struct{} { return i.ready }

// Events returns the events since the last call.
func (i *inbox) Events() []Event {
	i.mu.Lock()
	defer i.mu.Unlock()
	events := i.events
	i.events = nil
	return events
}

// put adds an event.
func (i *inbox) put(e Event) {
	i.mu.Lock()
	i.events = append(i.events, e)
	i.mu.Unlock()
	i.ready.Poke()
}

// moved adds an event of a member that came (+1) or went (-1).
func (i *inbox) moved(e Event, delta int) {
	i.mu.Lock()
	if i.addrs[e.Addr.Addr()] += delta; i.addrs[e.Addr.Addr()] <= 0 {
		delete(i.addrs, e.Addr.Addr())
	}
	i.mu.Unlock()
	i.put(e)
}

// knows reports whether a live member has an address.
func (i *inbox) knows(a netip.Addr) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.addrs[a] > 0
}
