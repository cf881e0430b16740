package node

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/problem"
)

const (
	// clockTolerance is by how much the clocks of two machines can differ without a Problem. From
	// authority.MaxAhead on, records and statements are refused.
	clockTolerance = time.Minute
	// fewClocks is how many clocks were read last that decide whether this machine's own is wrong, and
	// enoughClocks how many it takes.
	fewClocks    = 8
	enoughClocks = 2
	// maxClocks is how many machines with another time are noted at once.
	maxClocks = 16
)

// reading is by how much a node's clock was ahead of this machine's.
type reading struct {
	of clustermesh.Origin
	by time.Duration
}

func (r reading) differs() bool { return r.by.Abs() > clockTolerance }

// clocks are those of other nodes.
type clocks struct {
	last []reading // the latest of each node, at most fewClocks, the newest last
	// differ are the nodes whose clock differed, and whether another one was asked since: by then it is known
	// whether this machine's own clock is the one that is wrong.
	differ map[clustermesh.Origin]bool
}

// note takes a reading.
func (c *clocks) note(r reading) {
	c.last = slices.DeleteFunc(c.last, func(o reading) bool { return o.of == r.of })
	c.last = append(c.last, r)
	c.last = c.last[max(0, len(c.last)-fewClocks):]
	for o := range c.differ {
		c.differ[o] = c.differ[o] || o != r.of
	}
}

// own returns by how much this machine's clock is ahead of most others that were read last; 0 if it is not
// the one that is wrong, or if that is not known.
func (c *clocks) own() (ahead time.Duration, of, all int) {
	var differ []time.Duration
	for _, r := range c.last {
		if r.differs() {
			differ = append(differ, -r.by)
		}
	}
	if len(differ) < enoughClocks || 2*len(differ) <= len(c.last) {
		return 0, 0, len(c.last)
	}
	slices.Sort(differ)
	return differ[len(differ)/2], len(differ), len(c.last)
}

// confirm notes that the clock of a node differs, and reports whether it did before, and no other node is there
// to ask, or one was asked.
func (c *clocks) confirm(o clustermesh.Origin) bool {
	asked, before := c.differ[o]
	if before {
		return asked || len(c.last) == 1
	}
	if c.differ == nil {
		c.differ = map[clustermesh.Origin]bool{}
	}
	if len(c.differ) < maxClocks {
		c.differ[o] = false
	}
	return false
}

// compareClock takes what another node's clock showed when it answered, half a round trip ago.
func (v *observer) compareClock(o clustermesh.Origin, there time.Time, rtt time.Duration) {
	r := reading{o, there.Sub(v.now.Add(-rtt / 2))}
	if r.by.Abs() <= rtt/2 {
		r.by = 0 // the answer was under way for so long
	}
	v.clocks.note(r)
	ahead, of, all := v.clocks.own()
	if ahead != 0 {
		v.forgetClocks(func(clustermesh.Origin) bool { return true })
		v.problem("clock of others", v.cfg.Self.Ref().Problem(clustermesh.Problem{
			Code:    problem.ClocksDiffer,
			Message: fmt.Sprintf("this machine's clock is %s %s those of %d of the %d machines that were asked last%s", spell(ahead), aheadOf(ahead), of, all, soRefused(ahead)),
			Try:     "correct this machine's clock",
			Warning: ahead.Abs() < authority.MaxAhead,
		}), 0)
		return
	}
	v.solved("clock of others")
	if !r.differs() {
		v.forgetClocks(func(x clustermesh.Origin) bool { return x == o })
		return
	}
	if !v.clocks.confirm(o) {
		return
	}
	v.problem("clock of "+o.String(), o.Ref().Problem(clustermesh.Problem{
		Code:    problem.ClocksDiffer,
		Message: fmt.Sprintf("its clock is %s %s this machine's%s", spell(r.by), aheadOf(r.by), soRefused(r.by)),
		Try:     "correct the clock that is wrong",
		Warning: r.by.Abs() < authority.MaxAhead,
	}), 0)
}

// dropClocks forgets the clocks of nodes that are not heard any more.
func (v *observer) dropClocks() {
	gone := func(o clustermesh.Origin) bool { return !v.contacts.Contact(o).Heard() }
	v.clocks.last = slices.DeleteFunc(v.clocks.last, func(r reading) bool { return gone(r.of) })
	v.forgetClocks(gone)
	if ahead, _, _ := v.clocks.own(); ahead == 0 {
		v.solved("clock of others")
	}
}

// forgetClocks ends the Problems about the clocks of some nodes.
func (v *observer) forgetClocks(which func(clustermesh.Origin) bool) {
	maps.DeleteFunc(v.clocks.differ, func(o clustermesh.Origin, _ bool) bool {
		if which(o) {
			v.solved("clock of " + o.String())
			return true
		}
		return false
	})
}

// spell writes a difference of clocks. It is rounded, so that the text stays the same.
func spell(by time.Duration) string { return by.Abs().Round(time.Minute).String() }

func aheadOf(by time.Duration) string {
	if by > 0 {
		return "ahead of"
	}
	return "behind"
}

func soRefused(by time.Duration) string {
	if by.Abs() < authority.MaxAhead {
		return ""
	}
	return ": what one of them publishes may be refused"
}
