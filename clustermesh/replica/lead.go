package replica

// lead is the state of this node as its cluster's leader. A term is an epoch of the cluster's record.
// A leader writes nothing above a later term: another leader began it. If this node goes on leading
// all the same, because its clock is behind or two nodes believe that they lead, it begins a new term
// above that one, but only after a pause that doubles. So two leaders do not fight at wire speed.
type lead struct {
	elected, term uint64
	takeovers     int
	holdOff       int // ticks until another term can be begun
	quiet         int // ticks since one was begun
}

// in returns the state of a leader that was elected at an epoch: a new one if that is a new election.
func (l lead) in(election uint64) lead {
	if l.elected == election {
		return l
	}
	return lead{elected: election, term: election}
}

// above begins a term above another's, if it is time for that.
func (l *lead) above(other uint64) bool {
	if l.holdOff > 0 {
		return false
	}
	l.takeovers++
	l.term, l.holdOff, l.quiet = other+1, 1<<min(l.takeovers, 5), 0
	return true
}

func (l *lead) tick() {
	if l.quiet++; l.quiet > rivalQuiet {
		l.takeovers = 0
	}
	if l.holdOff > 0 {
		l.holdOff--
	}
}
