package health

import "strait.io/strait/internal/problem"

const (
	// A client whose answers are dropped sends its first packet again, for two minutes by default
	// (net.ipv4.tcp_syn_retries). So a growth in dropsBegin successive looks is no stray packet.
	// Without any in dropsEnd looks, it is over.
	dropsBegin, dropsEnd = 3, 6
	// refusedBegin is for packets that nothing in this cluster asked for. A scan of ports, or the end
	// of a connection that the kernel has forgotten, grow the counter too, for less than a minute.
	refusedBegin = 6
)

// Counters count the packets that the filter of the tunnel dropped.
type Counters struct{ Untracked, Refused uint64 }

// Drops knows what the filter of the tunnel dropped.
type Drops struct {
	total     Counters // since the daemon started
	last      Counters // as the table had it
	primed    bool     // last is known
	untracked streak
	refused   streak
}

// Note takes what the table counted. It counts from 0 after it was written.
func (d *Drops) Note(now Counters) {
	if !d.primed { // an earlier daemon may have written the table
		d.last, d.primed = now, true
		return
	}
	untracked := grown(d.last.Untracked, now.Untracked)
	d.total.Untracked += untracked
	refused := grown(d.last.Refused, now.Refused)
	d.total.Refused += refused
	d.last = now
	d.untracked.note(untracked > 0, dropsBegin)
	d.refused.note(refused > 0, refusedBegin)
}

func grown(before, now uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

// streak distinguishes lasting drops from occasional ones.
type streak struct {
	on       bool
	contrary int // looks in a row that contradict on
}

// note takes whether it happened since the last look. It is on after it did in begin successive
// looks.
func (s *streak) note(happened bool, begin int) {
	if happened == s.on {
		s.contrary = 0
		return
	}
	s.contrary++
	if !s.on && s.contrary >= begin || s.on && s.contrary >= dropsEnd {
		s.on, s.contrary = happened, 0
	}
}

// Problems reports packets that keep being dropped.
func (d *Drops) Problems() []problem.Problem {
	var out []problem.Problem
	if d.untracked.on {
		out = append(out, problem.Problem{
			Code: problem.UntrackedDropped, Object: "netfilter",
			Message: "packets of other clusters to this node are dropped, because another program keeps the kernel from tracking their connections: " +
				"calls of the node, and of pods on its network, get no answer",
			Try: "find the rule (nft list ruleset | grep notrack) and let it leave out what comes and goes by the tunnel's device; " +
				"in Cilium, it is installNoConntrackIptablesRules",
		})
	}
	if d.refused.on {
		out = append(out, problem.Problem{
			Code: problem.TunnelRefused, Object: "netfilter", Warning: true,
			Message: "other clusters keep sending packets through the tunnel to this node itself, or to addresses behind it that belong to none of its pods: they are dropped",
			Try:     "nft list table inet strait counts them by rule; see with tcpdump -ni strait0 who sends what: other clusters reach pods, and no listeners of nodes",
		})
	}
	return out
}

// Total returns what was dropped since the first Note.
func (d *Drops) Total() Counters { return d.total }
