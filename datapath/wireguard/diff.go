package wireguard

import (
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/problem"
)

// sessionLife is WireGuard's Reject-After-Time: if the last handshake is older than this, no
// session is alive.
const sessionLife = 180 * time.Second

// unanswered is how long a peer may take to answer before its underlay is doubted. WireGuard answers within
// 10 s, if only with a keepalive, and tries a handshake after 15 s.
const unanswered = 15 * time.Second

// put creates a peer, or changes one.
type put struct {
	datapath.Peer // Underlay is invalid if it stays; AllowedIPs are only those to add
	create        bool
	// reset takes what another program set and strait never does: a preshared key, and keepalives.
	reset bool
}

// sight is what earlier looks at a peer found.
type sight struct {
	underlay netip.AddrPort
	received int64
	// sent is what had been sent when the peer was heard last. Asked is when more was first seen to have
	// been sent; zero if nothing was.
	sent  int64
	asked time.Time
}

// look returns what is known of a peer after a look at it.
func (s sight) look(h PeerStatus, known bool, now time.Time) sight {
	if !known || h.Received != s.received {
		return sight{underlay: h.Underlay, received: h.Received, sent: h.Sent}
	}
	s.underlay = h.Underlay
	if h.Sent > s.sent && s.asked.IsZero() {
		s.asked = now
	}
	return s
}

// misled reports whether a peer's underlay cannot be where it roamed to. It roams with a packet that is
// received, so if it moved without one, another program set it. And a peer that does not answer is not
// there.
func (s sight) misled(h PeerStatus, now time.Time) bool {
	if h.Received != s.received {
		return false
	}
	return h.Underlay != s.underlay || !s.asked.IsZero() && now.Sub(s.asked) >= unanswered
}

// change leads from the device's peers to the wanted ones. Its parts are applied in the
// order of the fields. An allowed IP that moves goes from the old owner to the new one in one step
// of put, so at every moment it belongs to one of them.
type change struct {
	put []put
	// shed are allowed IPs that a wanted peer must lose and no other peer gets.
	shed []netip.Prefix
	// remove are the peers that are not wanted.
	remove []key.Public
}

// diff compares the device's peers with the wanted ones. set holds the underlay that this process last
// set for each peer, and seen what it saw last. Wanted peers that a device cannot have are left out,
// and each is a Problem.
func diff(have []PeerStatus, want []datapath.Peer, set map[key.Public]netip.AddrPort, seen map[key.Public]sight, self key.Public, now time.Time) (change, []problem.Problem) {
	want, problems := datapath.SoundPeers(want, self)
	installed := make(map[key.Public]PeerStatus, len(have))
	for _, h := range have {
		installed[h.Key] = h
	}
	var c change
	owner := map[netip.Prefix]key.Public{}
	wanted := map[key.Public]bool{}
	for _, w := range want {
		wanted[w.Key] = true
		for _, p := range w.AllowedIPs {
			owner[p] = w.Key
		}
		h, ok := installed[w.Key]
		if p, differs := difference(h, ok, w, set, seen, now); differs {
			c.put = append(c.put, p)
		}
	}
	for _, h := range have {
		if !wanted[h.Key] {
			c.remove = append(c.remove, h.Key)
			continue
		}
		for _, p := range h.AllowedIPs {
			if _, moves := owner[p]; !moves {
				c.shed = append(c.shed, p)
			}
		}
	}
	return c, problems
}

func difference(h PeerStatus, exists bool, w datapath.Peer, set map[key.Public]netip.AddrPort, seen map[key.Public]sight, now time.Time) (put, bool) {
	if !exists {
		return put{Peer: w, create: true}, true
	}
	p := put{Peer: datapath.Peer{Name: w.Name, Key: w.Key}, reset: h.Altered}
	last, known := set[w.Key]
	s, looked := seen[w.Key]
	if rewrite(h, w.Underlay, last, known, looked && s.misled(h, now), now) {
		p.Underlay = w.Underlay
	}
	for _, ip := range w.AllowedIPs {
		if !slices.Contains(h.AllowedIPs, ip) {
			p.AllowedIPs = append(p.AllowedIPs, ip)
		}
	}
	return p, p.reset || p.Underlay.IsValid() || len(p.AllowedIPs) > 0
}

// rewrite decides whether to set a peer's underlay. If the device's underlay differs from what was
// set, the peer has roamed and the device knows better, unless it is misled; only a change of the wanted
// underlay overrides it. After a restart it is not known what was set: then an address with a live session
// is assumed to be the better one.
func rewrite(h PeerStatus, want, last netip.AddrPort, known, misled bool, now time.Time) bool {
	switch {
	case !want.IsValid() || h.Underlay == want:
		return false
	case !h.Underlay.IsValid(), misled:
		return true
	case known:
		return last != want
	}
	return now.Sub(h.Handshake) > sessionLife
}
