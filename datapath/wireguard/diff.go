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

// put creates a peer, or changes one.
type put struct {
	datapath.Peer // Underlay is invalid if it stays; AllowedIPs are only those to add
	create        bool
}

// change says how to get from the device's peers to the wanted ones. Its parts are applied in the
// order of the fields. An allowed IP that moves goes from the old owner to the new one in one step
// of put, so at every moment it belongs to one of them.
type change struct {
	put []put
	// shed are allowed IPs that a wanted peer must lose and no other peer gets.
	shed []netip.Prefix
	// remove are the peers that are not wanted.
	remove []key.Public
}

// diff compares the device's peers with the wanted ones. set holds the underlay that this process
// last set for each peer. Wanted peers that a device cannot have are left out, and each is a
// Problem.
func diff(have []PeerStatus, want []datapath.Peer, set map[key.Public]netip.AddrPort, self key.Public, now time.Time) (change, []problem.Problem) {
	want, problems := datapath.SoundPeers(want, self)
	held := make(map[key.Public]PeerStatus, len(have))
	for _, h := range have {
		held[h.Key] = h
	}
	var c change
	owner := map[netip.Prefix]key.Public{}
	wanted := map[key.Public]bool{}
	for _, w := range want {
		wanted[w.Key] = true
		for _, p := range w.AllowedIPs {
			owner[p] = w.Key
		}
		h, ok := held[w.Key]
		if p, differs := difference(h, ok, w, set, now); differs {
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

func difference(h PeerStatus, exists bool, w datapath.Peer, set map[key.Public]netip.AddrPort, now time.Time) (put, bool) {
	if !exists {
		return put{Peer: w, create: true}, true
	}
	p := put{Peer: datapath.Peer{Name: w.Name, Key: w.Key}}
	if last, known := set[w.Key]; rewrite(h, w.Underlay, last, known, now) {
		p.Underlay = w.Underlay
	}
	for _, ip := range w.AllowedIPs {
		if !slices.Contains(h.AllowedIPs, ip) {
			p.AllowedIPs = append(p.AllowedIPs, ip)
		}
	}
	return p, p.Underlay.IsValid() || len(p.AllowedIPs) > 0
}

// rewrite decides whether to set a peer's underlay. If the device's underlay differs from what was
// set, the peer has roamed and the device knows better; only a change of the wanted underlay
// overrides it. After a restart it is not known what was set: then an address with a live session
// is assumed to be the better one.
func rewrite(h PeerStatus, want, last netip.AddrPort, known bool, now time.Time) bool {
	switch {
	case !want.IsValid() || h.Underlay == want:
		return false
	case !h.Underlay.IsValid():
		return true
	case known:
		return last != want
	}
	return now.Sub(h.Handshake) > sessionLife
}
