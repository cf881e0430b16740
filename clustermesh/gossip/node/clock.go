package node

import (
	"fmt"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/trust"
	"strait.io/strait/internal/problem"
)

// ahead returns how far an epoch is in the future, and 0 if that is not more than
// authority.MaxAhead. A node's epoch is when its daemon started, in Unix nanoseconds; a cluster's
// is when its leader was elected, in Unix milliseconds.
func ahead(o clustermesh.Origin, epoch uint64, now time.Time) time.Duration {
	unit := time.Nanosecond
	if o.Node == "" {
		unit = time.Millisecond
	}
	latest := uint64(now.Add(authority.MaxAhead).UnixNano()) / uint64(unit)
	if epoch <= latest {
		return 0
	}
	by := min(epoch-latest, uint64(1<<62)/uint64(unit)) // 146 years are enough
	return time.Duration(by)*unit + authority.MaxAhead
}

// behind returns by how much at least this machine's clock is behind, if most of the records that are
// held of other nodes' daemons come from the future; otherwise 0. They were accepted once, so the clock
// was set back since. One cluster's records alone could come from clocks that are wrong.
func (e *epochs) behind(self clustermesh.Origin, records clustermesh.ByOrigin[clustermesh.Record], now time.Time) (by time.Duration) {
	for o := range records.Since(e.seen) {
		if o.Node != "" && o != self {
			e.latest = max(e.latest, records.Get(o).Stamp.Epoch)
		}
	}
	e.seen = records
	if ahead(self, e.latest, now) == 0 {
		return 0
	}
	early, all := 0, 0
	e.latest = 0
	for o, r := range records.All() {
		if o.Node == "" || o == self {
			continue
		}
		all++
		e.latest = max(e.latest, r.Stamp.Epoch)
		if d := ahead(o, r.Stamp.Epoch, now); d > 0 {
			early++
			by = max(by, d)
		}
	}
	if 2*early <= all {
		return 0
	}
	return by
}

// epochs are those of the records of other nodes. No epoch of the records seen is later than
// latest, so that all of them are looked at only while that is in the future.
type epochs struct {
	seen   clustermesh.ByOrigin[clustermesh.Record]
	latest uint64
}

// checkClock reports that this machine's clock was set back since the daemon started, or since its last
// life.
func (n *Node) checkClock() {
	self := n.cfg.Self.Ref()
	late, by := n.epochs.behind(n.cfg.Self, n.replica.Records(), n.now), ahead(n.cfg.Self, n.replica.Epoch(), n.now)
	if n.behind = late > 0; n.behind {
		n.problem("clock behind", self.Problem(clustermesh.Problem{
			Code:    problem.ClockBehind,
			Message: fmt.Sprintf("this machine's clock is behind, by %s at least: what other nodes published before stays in force, and what they publish now is ignored", late.Round(time.Minute)),
			Try:     "correct this machine's clock",
		}), 0)
	} else {
		n.solved("clock behind")
	}
	if n.behind { // it is this node's own stamp that is right
		n.solved("clock")
		return
	}
	n.election.correct(n.cfg.Self.Cluster, n.now)
	if by == 0 {
		return
	}
	if n.replica.Refused() {
		n.begin()
	} else {
		n.replica.Hurry() // only an exchange shows whether others refuse it
	}
	n.problem("clock", self.Problem(clustermesh.Problem{
		Code:    problem.ClockSetBack,
		Message: fmt.Sprintf("this machine's clock was %s ahead of what it shows now when straitd started, so other nodes may ignore what this node publishes", by.Round(time.Minute)),
		Try:     "nothing to do if the clock is right now: other nodes believe this one again within seconds; otherwise correct it",
		Warning: true,
	}), ProblemLife)
}

// begin gives this node's record a new epoch, so that it counts where the clock is right.
func (n *Node) begin() {
	n.log(Info, "this machine's clock was ahead and has been corrected; this node's record gets a new timestamp")
	n.replica.Begin(uint64(n.now.UnixNano()))
	if n.publish() {
		n.actions.Changed = true
		return
	}
	n.apply(n.replica.Renew())
}

// checkSigner reports that the clock of the machine that has just signed the statement about this node
// differs from this machine's.
func (c *core) checkSigner(signed trust.Signed) {
	by := signed.At.Sub(time.Unix(signed.NotBefore, 0))
	if by.Abs() < authority.MaxAhead {
		c.solved("clock of the signer")
		return
	}
	than := "ahead of"
	if by < 0 {
		than = "behind"
	}
	c.problem("clock of the signer", c.cfg.Self.Ref().Problem(clustermesh.Problem{
		Code:    problem.ClockDiffers,
		Message: fmt.Sprintf("this machine's clock is %s %s that of the machine that signs for it", by.Abs().Round(time.Minute), than),
		Try:     "correct the clock that is wrong",
	}), 0)
}
