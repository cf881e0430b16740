package locality

import (
	"cmp"
	"fmt"
	"math"

	"strait.io/strait/clustermesh"
)

// reason tells people why an endpoint is used or not.
func (c *Choice) reason(v *Verdict, prefer Preference) string {
	switch {
	case v.Barred != "":
		return v.Barred
	case v.Dead:
		return "node is dead: its cluster says so"
	case v.Weight > 0 && v.class == leaving:
		return "terminating, but nothing is ready anywhere"
	case v.Weight > 0 && v.class == unreachable && v.blocked():
		return "its node's tunnel " + v.Fault + ", but nothing else is ready"
	case v.Weight > 0 && v.class == unreachable:
		return "node does not answer, but nothing else is ready"
	case v.Weight > 0 && v.class == impaired:
		return "its node's tunnel " + v.Fault + ", but nothing better is ready"
	case v.Weight > 0 && v.class == drained:
		return v.DrainedBy + " is drained, but nothing else is ready"
	case v.Weight > 0:
		return cmp.Or(c.spills(v), prefer.words(v)+c.keeps(v)) + draining(v) + stale(v)
	case v.Terminating:
		return "terminating: no new connections"
	case !v.Ready:
		return "pod is not ready"
	case v.class == unreachable && v.blocked():
		return "standby: its node's tunnel " + v.Fault + ", ranked last"
	case v.class == unreachable:
		return "standby: its node does not answer, ranked last"
	case v.class == impaired:
		return "standby: its node's tunnel " + v.Fault
	case v.class == drained:
		return v.DrainedBy + " is drained"
	}
	if c.Ramping && v.rank == c.Levels[0].rank && v.class == healthy {
		return prefer.words(v) + c.keeps(v) + stale(v)
	}
	return c.standby(v, prefer) + stale(v)
}

// standby says what carries the traffic instead of a healthy endpoint.
func (c *Choice) standby(v *Verdict, prefer Preference) string {
	carry := 0
	for _, l := range c.Levels {
		if l.Share > 0 {
			carry++
		}
	}
	switch {
	case v.rank&unweighted != 0:
		return "standby: its cluster has no weight"
	case carry > 1:
		return "standby: nearer endpoints carry everything"
	case len(prefer.Prefer) > 0 && v.rank>>preferShift > 0:
		return "standby: a preferred cluster carries everything"
	case v.rank&secondSide != 0 && prefer.Affinity == clustermesh.AffinityLocal:
		return "standby: affinity local, this cluster carries everything"
	case v.rank&secondSide != 0:
		return "standby: affinity remote, other clusters carry everything"
	case v.Tier == c.Tier && prefer.Timed:
		return "standby: a cluster that answers faster carries everything"
	case v.Tier == c.Tier:
		return "standby: a cheaper cluster carries everything"
	}
	return fmt.Sprintf("standby: tier %s carries everything", c.Tier)
}

// keeps says how much of the traffic the nearest rank has, if it is not everything.
func (c *Choice) keeps(v *Verdict) string {
	l := c.Levels[0]
	switch {
	case l.rank != v.rank || l.Share >= 1:
		return ""
	case c.Ramping:
		return fmt.Sprintf("; ramps up, %s now", percent(l.Share))
	case l.draining > 0:
		return fmt.Sprintf("; %s stays, the rest spills", percent(l.Share))
	}
	return fmt.Sprintf("; %d of %d ready: %s stays, the rest spills", l.stable, l.Expected, percent(l.Share))
}

// spills says that an endpoint of a farther rank takes some of the traffic; "" if it is in the nearest.
func (c *Choice) spills(v *Verdict) string {
	if c.Levels[0].rank == v.rank {
		return ""
	}
	return "ready; takes what nearer endpoints cannot"
}

func draining(v *Verdict) string {
	if v.Drained <= 0 {
		return ""
	}
	return fmt.Sprintf("; %s is being drained, %s done", v.DrainedBy, percent(v.Drained))
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", math.Floor(100*share+0.5)) }

// stale marks an endpoint whose record may be old.
func stale(v *Verdict) string {
	switch v.Contact {
	case clustermesh.Held:
		return " (held: its node is not heard)"
	case clustermesh.Quiet:
		return " (its node's daemon is down, its machine answers)"
	}
	return ""
}
