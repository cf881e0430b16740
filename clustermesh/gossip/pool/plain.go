package pool

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// plainBytes bounds what one of memberlist's connections without TLS may send: the members of a
	// clusterset of several thousand nodes. maxPlain bounds how many there are at once.
	plainBytes = 2 << 20
	maxPlain   = 8
	// plainGrace is how long an address may use memberlist's connections without TLS after its last
	// record stream ended: an old daemon asks who we are just before it joins.
	plainGrace = 30 * time.Second
)

// plain says which addresses may use memberlist's connections without TLS: those whose daemon has
// proven on a record stream that it has the gossip key, and has not offered TLS for memberlist. Such
// daemons are of the version before, and an upgrade goes from one version to the next, with both
// running. The alternatives are worse: without them, the halves of a clusterset that is being
// upgraded lose each other, and to accept them from everyone is what TLS is for.
type plain struct {
	mu      sync.Mutex
	streams map[netip.Addr]int       // open record streams of old daemons
	until   map[netip.Addr]time.Time // after the last one ended
	open    int                      // connections without TLS
}

func newPlain() *plain {
	return &plain{streams: map[netip.Addr]int{}, until: map[netip.Addr]time.Time{}}
}

// old notes a record stream of an old daemon. The result must be called when the stream ends.
func (p *plain) old(addr netip.Addr) (ended func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[addr]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.streams[addr]--; p.streams[addr] > 0 {
			return
		}
		delete(p.streams, addr)
		now := time.Now()
		for a, until := range p.until {
			if now.After(until) {
				delete(p.until, a)
			}
		}
		p.until[addr] = now.Add(plainGrace)
	}
}

// enter reports whether an address may use a connection without TLS now. If so, leave must be called
// when the connection ends.
func (p *plain) enter(addr netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open >= maxPlain || p.streams[addr] == 0 && !time.Now().Before(p.until[addr]) {
		return false
	}
	p.open++
	return true
}

func (p *plain) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
}
