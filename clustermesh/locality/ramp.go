package locality

// Ramp limits how fast traffic returns to nearer endpoints, so that one pod that becomes ready is not
// flooded, and a zone that flaps moves little. Traffic leaves at once. The zero value limits nothing.
type Ramp struct {
	// Past are the Levels of the last choice.
	Past []Level
	// Step is by how much the share of the nearer ranks can have grown since then, 0 to 1.
	Step float64
}

// rounding is more than what the sums of shares are off by.
const rounding = 1e-9

// limit changes the shares of ranks that all have healthy endpoints, nearest first. For each rank, it
// and all nearer ones together get at most Step more than they had. It reports whether any would get
// more; if none would, the shares stay what they are to the last bit.
func (r Ramp) limit(levels []Level) (limited bool) {
	if len(r.Past) == 0 || len(levels) < 2 {
		return false
	}
	shares := make([]float64, len(levels))
	wanted, given := 0.0, 0.0
	for i, l := range levels {
		wanted += l.Share
		can := wanted
		if most := r.had(l.rank) + r.Step; i < len(levels)-1 && most < wanted-rounding { // there is no level behind the last
			can, limited = max(most, given), true
		}
		if can-given > rounding { // or else each endpoint of a rank that should get nothing would have the smallest weight
			shares[i], given = can-given, can
		}
	}
	if !limited {
		return false
	}
	for i := range levels {
		levels[i].Share = shares[i]
	}
	return true
}

// had returns what a rank and all nearer ones had.
func (r Ramp) had(at rank) (share float64) {
	for _, l := range r.Past {
		if l.rank <= at {
			share += l.Share
		}
	}
	return share
}
