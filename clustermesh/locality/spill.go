package locality

import (
	"cmp"
	"math"
	"slices"

	"strait.io/strait/clustermesh"
)

// Spill. A rank keeps all traffic while it has as many healthy endpoints as it needs. With fewer it
// keeps that proportion, and the rest goes to the next rank, in the same way. What no rank can take
// is shared by those that have healthy endpoints, in proportion. What a rank needs is
// service.strait.io/min-ready, or else what it should have, divided by Preference.Factor: endpoints
// can bear somewhat more than their share.

// spread gives weights to the healthy candidates.
func (c *Choice) spread(self Self, prefer Preference, ramp Ramp) {
	c.Levels = c.levels()
	left := 1.0
	for i := range c.Levels {
		l := &c.Levels[i]
		l.Share = left * prefer.keeps(*l)
		left -= l.Share
	}
	if given := 1 - left; given > 0 && left > 0 {
		for i := range c.Levels {
			c.Levels[i].Share /= given
		}
	}
	c.Levels = slices.DeleteFunc(c.Levels, func(l Level) bool { return l.Ready <= 0 })
	c.Ramping = ramp.limit(c.Levels)
	c.weigh(prefer)
}

// levels counts the candidates of each rank, nearest first.
func (c *Choice) levels() (out []Level) {
	for i := range c.Verdicts {
		v := &c.Verdicts[i]
		if !v.expected() {
			continue
		}
		at, found := slices.BinarySearchFunc(out, v.rank, func(l Level, r rank) int { return cmp.Compare(l.rank, r) })
		if !found {
			out = slices.Insert(out, at, Level{rank: v.rank})
		}
		out[at].count(v)
	}
	return out
}

// count adds a candidate that is expected.
func (l *Level) count(v *Verdict) {
	l.Expected++
	if v.class != healthy {
		return
	}
	if l.Ready += 1 - v.Drained; v.Drained > 0 {
		l.draining++
	} else {
		l.stable++
	}
}

// weighted counts the candidates of each cluster that has a weight.
func (c *Choice) weighted(prefer Preference) map[clustermesh.ClusterName]*Level {
	if len(prefer.Weights) == 0 {
		return nil
	}
	out := map[clustermesh.ClusterName]*Level{}
	for i := range c.Verdicts {
		v := &c.Verdicts[i]
		if !v.expected() || prefer.weight(v.Cluster) == 0 {
			continue
		}
		if out[v.Cluster] == nil {
			out[v.Cluster] = &Level{}
		}
		out[v.Cluster].count(v)
	}
	heaviest := slices.MaxFunc(prefer.Weights, func(a, b clustermesh.ClusterWeight) int { return cmp.Compare(a.Weight, b.Weight) })
	for name, l := range out {
		l.Share = float64(prefer.weight(name)) / float64(heaviest.Weight) * prefer.keeps(*l)
	}
	return out
}

// expected reports whether the candidate would be used if nothing was wrong with it. A pod that
// terminates is leaving, and its successor counts.
func (v *Verdict) expected() bool {
	return v.Barred == "" && !v.Terminating
}

// keeps returns which part of what reaches a rank it keeps, 0 to 1. What its endpoints that are being
// drained add to that shrinks evenly.
func (p Preference) keeps(l Level) float64 {
	without := p.bears(l.stable, l.Expected)
	if l.draining == 0 {
		return without
	}
	left := (l.Ready - float64(l.stable)) / float64(l.draining)
	return without + left*(p.bears(l.stable+l.draining, l.Expected)-without)
}

// bears returns which part of the traffic some healthy endpoints of those that are expected can bear.
func (p Preference) bears(healthy, expected int) float64 {
	need := 0.0
	switch m := p.MinReady; {
	case m.Count > 0:
		need = float64(m.Count)
	case m.Percent > 0:
		need = float64(expected) * float64(m.Percent) / 100
	case p.Factor > 0:
		need = float64(expected) / p.Factor
	}
	switch h := float64(healthy); {
	case healthy == 0:
		return 0
	case h >= need-1e-9:
		return 1
	default:
		return h / need
	}
}

// MaxWeight is the largest weight of a Verdict.
const MaxWeight = 1 << 16

// scale times a whole number is what the weights of a choice add up to, before common factors are taken
// out. It is divisible by most small numbers, so that equal shares are equal weights.
const scale = 55440

// weigh divides the share of each rank among its healthy candidates: alike, or by the weights of their
// clusters, as far as these can bear them. Weights are as large as they can be, because many
// candidates have small shares each.
func (c *Choice) weigh(prefer Preference) {
	most, clusters := 0.0, c.weighted(prefer)
	for _, l := range c.Levels {
		total := 0.0
		for j := range c.Verdicts {
			if v := &c.Verdicts[j]; v.class == healthy && v.rank == l.rank {
				v.share = v.part(clusters[v.Cluster])
				total += v.share
			}
		}
		for j := range c.Verdicts {
			if v := &c.Verdicts[j]; v.class == healthy && v.rank == l.rank {
				v.share *= l.Share / total
				most = max(most, v.share)
			}
		}
	}
	unit, common := scale*math.Floor(MaxWeight/(scale*most)), uint32(0)
	for i := range c.Verdicts {
		if v := &c.Verdicts[i]; v.share > 0 {
			v.Weight = uint32(max(1, math.Round(unit*v.share)))
			common = gcd(common, v.Weight)
		}
	}
	for i := range c.Verdicts {
		if v := &c.Verdicts[i]; v.Weight > 0 {
			v.Weight /= common
		}
	}
}

// Sums of these are exact, so that the order of candidates does not matter.
const (
	drainStep = 1.0 / (1 << 10) // of Candidate.Drained
	partStep  = 1.0 / (1 << 30)
)

// part is a healthy candidate's part of its rank, relative to the others there. A cluster with a weight,
// of which too few are healthy, gets less, like a rank.
func (v *Verdict) part(cluster *Level) float64 {
	part := 1 - v.Drained
	if cluster == nil {
		return part
	}
	return partStep * max(1, math.Round(part*cluster.Share/cluster.Ready/partStep))
}

func gcd(a, b uint32) uint32 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
