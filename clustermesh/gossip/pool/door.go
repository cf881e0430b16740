package pool

import (
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

// door decides which connections may wait for their proof. When there is no room, the oldest
// connection of the source that has most of them must go, and the new one may wait; if several sources
// have as many, the oldest of theirs. A real daemon needs a few milliseconds, so it is through long
// before it is the oldest; a stranger that stays silent only takes room from itself.
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
		out = d.oldest(in.source)
	case d.n >= d.most:
		out = d.oldest(d.largest())
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

func (d *door) oldest(source netip.Prefix) *visitor {
	v := d.waiting[source][0]
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

// largest returns the source with the most connections; of several, the one that came first.
func (d *door) largest() (most netip.Prefix) {
	for s, all := range d.waiting {
		now := d.waiting[most]
		if len(all) > len(now) || len(all) == len(now) && all[0].number < now[0].number {
			most = s
		}
	}
	return most
}
