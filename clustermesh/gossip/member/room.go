package member

import (
	"time"

	"strait.io/strait/clustermesh"
)

// Bounds on members. A holder of the gossip key can invent members, each of which costs memory and
// probes.
const (
	// maxLives bounds the lives of one node that are members or were lately. A daemon that crashes in
	// a loop has a few.
	maxLives = 64
	// maxUnpinned bounds the members of all clusters that are not pinned where others are: enough to
	// list those clusters.
	maxUnpinned = 256
	// maxUnknown bounds the members of all clusters where none is pinned, without the known nodes.
	maxUnknown = 20_000
	// seatLife is how long a seat is kept after its member left, and for one that never joined:
	// memberlist remembers it about as long.
	seatLife = 2 * time.Minute
)

// Room decides who is one member too many. A node that records are known of, or that its cluster
// lists, always finds room: those who invent names cannot keep it out.
type Room struct {
	// seats are the members that were let in: zero while they are members, otherwise when they left or
	// were let in.
	seats   map[ID]time.Time
	lives   map[clustermesh.Origin]int
	known   map[clustermesh.Origin]bool
	unknown map[clustermesh.ClusterName]int // seats of nodes that are not known
	// strangers are the seats of unknown nodes of clusters that are not pinned.
	strangers int
	// quotas are how many nodes the pinned clusters can have. Nil pins none.
	quotas  map[clustermesh.ClusterName]int
	quota   int // of a cluster where none is pinned
	cleared time.Time
}

// NewRoom makes a Room in which every cluster can have so many nodes until SetQuotas.
func NewRoom(quota int) *Room {
	return &Room{
		seats: map[ID]time.Time{}, lives: map[clustermesh.Origin]int{}, known: map[clustermesh.Origin]bool{},
		unknown: map[clustermesh.ClusterName]int{}, quota: quota,
	}
}

// SetQuotas sets how many nodes the pinned clusters can have. Nil means that none is pinned.
func (r *Room) SetQuotas(quotas map[clustermesh.ClusterName]int) {
	r.quotas = quotas
	clear(r.unknown)
	r.strangers = 0
	for o, n := range r.lives {
		r.countUnknown(o, n)
	}
}

// Know sets of some nodes whether they are known. At first, none is.
func (r *Room) Know(nodes map[clustermesh.Origin]bool) {
	for o, known := range nodes {
		switch {
		case known == r.known[o]:
		case known:
			r.countUnknown(o, -r.lives[o])
			r.known[o] = true
		default:
			delete(r.known, o)
			r.countUnknown(o, r.lives[o])
		}
	}
}

// Admit reports whether there is room for a member, and gives it a seat if so.
func (r *Room) Admit(m ID, now time.Time) bool {
	if _, seated := r.seats[m]; seated {
		return true
	}
	if r.full(m.Origin) {
		// Not for each that is refused, because it looks at all seats.
		if now.Sub(r.cleared) < time.Second {
			return false
		}
		if r.clear(now); r.full(m.Origin) {
			return false
		}
	}
	r.seats[m] = now
	r.count(m.Origin, +1)
	return true
}

// Joined notes that a member is there.
func (r *Room) Joined(m ID) {
	if _, seated := r.seats[m]; seated {
		r.seats[m] = time.Time{}
	}
}

// Left notes that a member is gone.
func (r *Room) Left(m ID, now time.Time) {
	if _, seated := r.seats[m]; seated {
		r.seats[m] = now
	}
}

func (r *Room) full(o clustermesh.Origin) bool {
	if r.lives[o] >= maxLives {
		return true
	}
	if r.known[o] {
		return false
	}
	if r.quotas == nil {
		return r.unknown[o.Cluster] >= r.quota || r.strangers >= maxUnknown
	}
	if quota, pinned := r.quotas[o.Cluster]; pinned {
		return r.unknown[o.Cluster] >= quota
	}
	return r.strangers >= maxUnpinned
}

// clear takes back the seats of those that left, or never came.
func (r *Room) clear(now time.Time) {
	r.cleared = now
	for m, since := range r.seats {
		if !since.IsZero() && now.Sub(since) > seatLife {
			delete(r.seats, m)
			r.count(m.Origin, -1)
		}
	}
}

func (r *Room) count(o clustermesh.Origin, delta int) {
	if r.lives[o] += delta; r.lives[o] == 0 {
		delete(r.lives, o)
	}
	r.countUnknown(o, delta)
}

func (r *Room) countUnknown(o clustermesh.Origin, delta int) {
	if r.known[o] {
		return
	}
	if _, pinned := r.quotas[o.Cluster]; !pinned {
		r.strangers += delta
	}
	if r.unknown[o.Cluster] += delta; r.unknown[o.Cluster] == 0 {
		delete(r.unknown, o.Cluster)
	}
}
