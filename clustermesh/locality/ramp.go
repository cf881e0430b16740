package locality

// Ramp limits how fast traffic returns to nearer endpoints, so that one pod that becomes ready is not
// flooded, and a zone that flaps moves little. Traffic leaves at once. The zero value limits nothing.
type Ramp struct {
	// Past are the Levels of the last choice.
	Past []Level
	// Step is by how much the share of the nearer ranks can have grown since then, 0 to 1.
	Step float64
}

// limit changes the shares of ranks that all have healthy endpoints, nearest first. For each rank, it
// and all nearer ones together get at most Step more than they had. It reports whether any would get
// more.
func (r Ramp) limit(levels []Level) (limited bool) {
	if len(r.Past) == 0 || len(levels) < 2 {
		return false
	}
	wanted, given := 0.0, 0.0
	for i := range levels {
		wanted += levels[i].Share
		can := min(wanted, r.had(levels[i].rank)+r.Step)
		if i == len(levels)-1 { // there is nobody farther
			can = 1
		}
		can = max(can, given)
		limited = limited || can < wanted-1e-9
		levels[i].Share, given = can-given, can
	}
	return limited
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
