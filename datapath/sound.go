package datapath

import (
	"fmt"
	"net/netip"

	"strait.io/strait/internal/key"
	"strait.io/strait/internal/problem"
)

// SoundPeers returns the peers that one WireGuard device can have at the same time, with their
// prefixes masked, and a Problem for each contradiction. It guards against bugs: daemon/plan makes
// no plan that contradicts itself. A device would silently ignore a peer with its own key, and
// silently move a prefix from one peer to another.
func SoundPeers(want []Peer, self key.Public) (sound []Peer, problems []problem.Problem) {
	refuse := func(p Peer, format string, args ...any) {
		problems = append(problems, problem.Named("peer", p.Name).Problem(problem.Problem{
			Code:    problem.PlanIncoherent,
			Message: fmt.Sprintf(format, args...) + ": left out",
			Try:     "report this as a bug of strait: a plan must not contain it",
		}))
	}
	keys := make(map[key.Public]string, len(want))
	owner := make(map[netip.Prefix]string, len(want))
	sound = make([]Peer, 0, len(want))
	for _, p := range want {
		if other, twice := keys[p.Key]; twice || p.Key.IsZero() || p.Key == self {
			refuse(p, "its key is missing, this node's own, or the key of peer %q", other)
			continue
		}
		keys[p.Key] = p.Name
		ips := make([]netip.Prefix, 0, len(p.AllowedIPs))
		for _, ip := range p.AllowedIPs {
			ip = ip.Masked()
			if first, taken := owner[ip]; taken || !ip.IsValid() {
				refuse(p, "its allowed IP %s is invalid or belongs to peer %q", ip, first)
				continue
			}
			owner[ip] = p.Name
			ips = append(ips, ip)
		}
		p.AllowedIPs = ips
		sound = append(sound, p)
	}
	return sound, problems
}
