package gossip

import (
	"fmt"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// maxAhead is how far ahead of this machine's clock the epoch of a record may be.
const maxAhead = 10 * time.Minute

// ahead returns how far an epoch is in the future, and 0 if that is not more than maxAhead. A node's
// epoch is when its daemon started, in Unix nanoseconds; a cluster's is when its leader was elected,
// in Unix milliseconds.
func ahead(o clustermesh.Origin, epoch uint64, now time.Time) time.Duration {
	unit := time.Nanosecond
	if o.Node == "" {
		unit = time.Millisecond
	}
	latest := uint64(now.Add(maxAhead).UnixNano()) / uint64(unit)
	if epoch <= latest {
		return 0
	}
	by := min(epoch-latest, uint64(1<<62)/uint64(unit)) // 146 years say enough
	return time.Duration(by)*unit + maxAhead
}

// checkClock reports that this machine's clock was set back since the daemon started, so that others
// refuse what this node writes. The lock is held.
func (g *Gossip) checkClock(now time.Time) {
	by := ahead(g.cfg.Self, g.replica.Epoch(), now)
	if by == 0 {
		g.solved("clock")
		return
	}
	g.problem("clock", clustermesh.Problem{
		Code:    problem.ClockSetBack,
		Object:  "node " + g.cfg.Self.String(),
		Message: fmt.Sprintf("this machine's clock was %s ahead when straitd started, and has been set back: other nodes ignore what this node says", by.Round(time.Minute)),
		Try:     "restart straitd",
	}, 0)
}
