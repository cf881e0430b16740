package pool

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"

	"strait.io/strait/internal/l4"
)

// Bounds on connections whose peers have not proven yet that they have the gossip key. A door holds
// at most maxWaiting of them, and maxPerSource of one source. Each can make us hold handshakeBytes
// twice, as received and as decoded, so that a door takes 16 MiB at most.
const (
	maxWaiting   = 256
	maxPerSource = 32
)

// door decides which connections may wait for their proof. When there is no room, one of them must
// go, and the new one may wait: the oldest that has sent nothing, of the source that has most of
// those. A real daemon sends its first bytes at once, and a stranger that stays silent only takes
// room from itself. If all have sent something, one of the source with the most is drawn: if it
// were the oldest, none of many nodes behind one address would ever get through while their
// connections come faster than they are served.
type door struct {
	mu      sync.Mutex
	waiting map[netip.Prefix][]*visitor // by source, the oldest first
	n       int
	entered uint64

	most, perSource int
}

// rooms are the doors for connections that wait for their proof, for memberlist's connections, whose peers
// have proven that they have the gossip key, and for those of the latter that send much.
type rooms struct{ door, members, large *door }

func newRooms() *rooms {
	return &rooms{newDoor(), newDoorOf(maxMembers, maxMembersPerSource), newDoorOf(maxLarge, maxLargePerSource)}
}

// visitor is a connection that waits at a door.
type visitor struct {
	conn    net.Conn
	source  netip.Prefix
	number  uint64 // in the order in which they came
	crowded bool   // it had to go
	spoke   bool   // it has sent something
}

func newDoor() *door { return newDoorOf(maxWaiting, maxPerSource) }

func newDoorOf(most, perSource int) *door {
	return &door{waiting: map[netip.Prefix][]*visitor{}, most: most, perSource: perSource}
}

// enter lets a connection wait. It returns the one that must go for it, if there is no room.
func (d *door) enter(conn net.Conn, addr netip.Addr) (in, out *visitor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entered++
	in = &visitor{conn: conn, source: l4.Source(addr), number: d.entered}
	switch {
	case len(d.waiting[in.source]) >= d.perSource:
		out = d.draw(in.source)
	case d.n >= d.most:
		out = d.draw(d.largest())
	}
	d.waiting[in.source] = append(d.waiting[in.source], in)
	d.n++
	return in, out
}

// admit lets a connection wait, and closes the one that must go for it.
func (d *door) admit(conn net.Conn, addr netip.Addr) *visitor {
	in, out := d.enter(conn, addr)
	if out != nil {
		out.conn.Close()
	}
	return in
}

// leave frees a connection's room, and reports whether it had to go before.
func (d *door) leave(v *visitor) (crowded bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remove(v)
	return v.crowded
}

// spoke notes that a connection has sent something.
func (d *door) spoke(v *visitor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v.spoke = true
}

// draw lets one of a source's connections go.
func (d *door) draw(source netip.Prefix) *visitor {
	all := d.waiting[source]
	i := slices.IndexFunc(all, func(v *visitor) bool { return !v.spoke })
	if i < 0 {
		i = rand.IntN(len(all))
	}
	v := all[i]
	v.crowded = true
	d.remove(v)
	return v
}

func (d *door) remove(v *visitor) {
	all := d.waiting[v.source]
	i := slices.Index(all, v)
	if i < 0 {
		return
	}
	d.n--
	if all = slices.Delete(all, i, i+1); len(all) == 0 {
		delete(d.waiting, v.source)
	} else {
		d.waiting[v.source] = all
	}
}

// largest returns the source with the most connections that have sent nothing, or if there are
// none, with the most of all; of several, the one whose first such connection came first.
func (d *door) largest() (largest netip.Prefix) {
	most, anySilent, number := 0, false, uint64(0)
	for source, all := range d.waiting {
		n, first := len(all), all[0].number
		silent := 0
		for _, v := range slices.Backward(all) {
			if !v.spoke {
				silent++
				first = v.number
			}
		}
		if anySilent || silent > 0 {
			n = silent
		}
		if silent > 0 && !anySilent || n > most || n == most && first < number {
			largest, most, anySilent, number = source, n, anySilent || silent > 0, first
		}
	}
	return largest
}
