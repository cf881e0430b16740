package replica

// refusals is how many answers of peers in a row, each without what this node says, mean that others
// refuse that.
const refusals = 3

// answered notes whether a peer that knows that it has everything holds what this node says in the present
// epoch.
func (r *Replica) answered(said Sender, holds bool) {
	switch {
	case said.Unsynced || r.writer.content == nil:
	case holds:
		r.writer.refused = 0
	default:
		r.writer.refused++
	}
}

// Refused reports whether this node's own record is from the future, and others do not take it: its clock
// was ahead, and is right now. If others do, it is the present clock that is wrong, and they would not
// take what is stamped by that.
func (r *Replica) Refused() bool {
	return r.ahead(r.self, r.writer.epoch) > 0 && r.writer.refused >= refusals
}

// Begin makes what this node writes from now on the first of an epoch, which can be lower than the present
// one.
func (r *Replica) Begin(epoch uint64) {
	r.writer.epoch, r.writer.count, r.writer.refused = max(epoch, 1), 0, 0
}
