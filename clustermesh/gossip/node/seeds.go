package node

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/observe"
)

// SetSeeds replaces the seeds, each "host:port", and the hints.
func (v *observer) SetSeeds(seeds []string, hints []netip.AddrPort) { v.seeds.Set(seeds, hints) }

// Seeds returns the seeds to resolve now, and some hints.
func (v *observer) Seeds() (seeds []string, hints []member.Target) { return v.seeds.Next(v.cfg.Random) }

// Targets returns which addresses of seeds and known nodes to try now: those of nodes that are not
// alive, and of neighbours that may not have heard of this node. Reached are the seeds that need no
// attempt.
func (n *Node) Targets(seeds []member.Target, now time.Time) (out []member.Target, reached map[string]bool) {
	n.now = now
	if n.seeds.Resolved(seeds) {
		n.actions.Changed = true
	}
	records := n.records.Records()
	missing := n.contacts.Missing(records, n.replica.IsNeighbour, now)
	wanted := map[netip.AddrPort]bool{}
	for _, s := range seeds {
		wanted[s.Addr] = true
	}
	var lists [][]netip.AddrPort // one for each cluster
	for i, o := range missing {
		if i == 0 || o.Cluster != missing[i-1].Cluster {
			lists = append(lists, nil)
		}
		list, rec := &lists[len(lists)-1], records.Get(o)
		for _, a := range observe.ProbeAddrs(rec, n.contacts.Addr(o)) {
			if a.Addr() != rec.Content.Node.Inside {
				*list, wanted[a] = append(*list, a), true
			}
		}
	}
	var live []netip.AddrPort
	for _, o := range n.contacts.MayBeAt(wanted, records) {
		_, lost := slices.BinarySearchFunc(missing, o, clustermesh.Origin.Compare)
		// A mere report of where it is does not spare a seed there the question who it is.
		if at := n.Addr(o, now); !lost && n.isAt(o, at.Addr()) {
			live = append(live, at)
		}
	}
	return n.seeds.Targets(seeds, lists, live, n.cfg.Random)
}

// Tried takes the result of asking a target who it is.
func (v *observer) Tried(addr netip.AddrPort, peer member.Peer, believed bool, err error, now time.Time) {
	v.now = now
	where := addr.String()
	if errors.Is(err, member.ErrWrongKey) {
		v.problem("key "+where, wrongKeyProblem(where), ProblemLife)
	}
	if err != nil {
		return
	}
	v.solved("key " + where)
	switch {
	case !believed:
	case peer.ID == v.self.ID:
		v.seeds.IsSelf(addr) // a seed that is this daemon, by another address
	case peer.Origin == v.cfg.Self:
		v.twin(where)
	}
}

// EndRound takes the results of a round of Targets. It reports the seeds that did not answer at any of their
// addresses. A seed that was refused (wrong key, other cluster) has a Problem of its own.
func (v *observer) EndRound(targets []member.Target, errs []error, reached map[string]bool, now time.Time) {
	v.now = now
	for i, t := range targets {
		if errs[i] == nil || errors.Is(errs[i], member.ErrWrongKey) || errors.Is(errs[i], member.ErrOtherCluster) {
			reached[t.Seed] = true
		}
	}
	for i, t := range targets {
		if t.Seed != "" && !reached[t.Seed] {
			v.seedFailed(t.Seed, errs[i])
		}
	}
	v.everySeed = v.seeds.Every(reached)
	for seed := range reached {
		delete(v.seedless, seed)
		v.solved("seed " + seed)
	}
}

// SeedFailed reports a seed that could not be resolved.
func (v *observer) SeedFailed(seed string, err error, now time.Time) {
	v.now = now
	v.seedFailed(seed, err)
}

// seedPatience is how long a seed must fail to be a Problem: its daemon can just be restarted. A seed is tried
// each 5 s, or each second where no other daemon is heard.
const seedPatience = 4500 * time.Millisecond

func (v *observer) seedFailed(seed string, err error) {
	since, before := v.seedless[seed]
	if !before {
		v.seedless[seed], since = v.now, v.now
	}
	if v.now.Sub(since) < seedPatience {
		return
	}
	v.problem("seed "+seed, seedProblem(seed, err, v.Alone()), ProblemLife)
}

// Alone reports whether no other daemon is heard.
func (v *observer) Alone() bool { return v.contacts.Alive().Len() == 0 }
