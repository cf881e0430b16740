package history

import (
	"fmt"
	"net/netip"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/plan"
)

// Replay makes turns again from their frames. One goroutine uses it. The zero Replay begins with the first
// frame of a history, or with the first of Recorder.Whole.
type Replay struct {
	r        reader
	seq      uint64
	turn     Turn
	begun    bool
	records  clustermesh.Draft[clustermesh.Record]
	bodies   map[clustermesh.Origin][]byte
	contacts clustermesh.Draft[clustermesh.Contact]
	proven   clustermesh.Draft[netip.AddrPort]

	more    bool
	item    api.HistoryItem
	hasItem bool

	past   plan.Past
	Plans  int       // how many turns in a row were planned
	Since  time.Time // when the first of them was
	result *plan.Result
}

// Seq is the number of the turn.
func (r *Replay) Seq() uint64 { return r.seq }

// More reports whether the last turn is not complete.
func (r *Replay) More() bool { return r.more }

// Item is what the turn changed, and whether anything that people should know of.
func (r *Replay) Item() (api.HistoryItem, bool) { return r.item, r.hasItem }

// Turn is the last complete turn, with its plan if it was planned. It has no Problems.
func (r *Replay) Turn() *Turn {
	t := r.turn
	t.Result = r.result
	return &t
}

// Frame reads the next frame, and reports whether a turn is complete with it. After an error, the Replay must
// not be used.
func (r *Replay) Frame(frame []byte) (complete bool, err error) {
	m, err := r.r.message(frame)
	if err != nil {
		return false, err
	}
	if !r.begun && !m.Whole {
		return false, fmt.Errorf("turn %d: what it is a change of is missing", m.Seq)
	}
	if m.Whole {
		r.records, r.contacts, r.proven = clustermesh.Draft[clustermesh.Record]{}, clustermesh.Draft[clustermesh.Contact]{}, clustermesh.Draft[netip.AddrPort]{}
		r.bodies, r.begun = map[clustermesh.Origin][]byte{}, true
	}
	if err := r.change(m); err != nil {
		return false, fmt.Errorf("turn %d: %w", m.Seq, err)
	}
	if r.more = m.More; r.more {
		return false, nil
	}
	if m.Seq == r.seq { // where a file begins, what was known at the end of the one before is written again
		r.share()
		return false, nil
	}
	r.seq, r.result = m.Seq, nil
	r.turn.Inputs.Now, r.turn.Start, r.turn.Error = time.Unix(0, m.At), m.Start, m.Error
	r.share()
	if r.turn.Start != "" { // a daemon begins without a past
		r.past, r.Plans = plan.Past{}, 0
	}
	r.item, r.hasItem, err = m.itemOf()
	return true, err
}

// share makes what was changed the state of the turn.
func (r *Replay) share() {
	s := &r.turn.Inputs.State
	s.Records, s.Contacts, s.Proven = r.records.Share(), r.contacts.Share(), r.proven.Share()
}

// change applies a message.
func (r *Replay) change(m message) error {
	if len(m.Settings) > 0 {
		var s settings
		if err := decMode.Unmarshal(m.Settings, &s); err != nil {
			return fmt.Errorf("decode the settings: %w", err)
		}
		s.put(&r.turn)
	}
	for _, c := range m.Records {
		b, err := c.patch(r.bodies[c.Origin])
		if err != nil {
			return err
		}
		var x body
		if err := decMode.Unmarshal(b, &x); err != nil {
			return fmt.Errorf("decode the record of %s: %w", c.Origin, err)
		}
		r.bodies[c.Origin] = b
		r.records.Set(c.Origin, clustermesh.Record{
			Origin: c.Origin, Stamp: c.Stamp, Content: x.Content, UID: x.UID,
			Problems: x.Problems, Late: x.Late, Unasked: x.Unasked, KeyProven: x.KeyProven,
		})
	}
	for _, o := range m.Gone {
		delete(r.bodies, o)
		r.records.Delete(o)
	}
	for _, c := range m.Contacts {
		o := clustermesh.Origin{Cluster: c.Cluster, Node: c.Node}
		switch {
		case c.Gone:
			r.contacts.Delete(o)
		case c.Contact > uint8(clustermesh.Reported):
			return fmt.Errorf("contact %d of %s is unknown", c.Contact, o)
		default:
			r.contacts.Set(o, clustermesh.Contact(c.Contact))
		}
	}
	for _, p := range m.Proven {
		if p.At.IsValid() {
			r.proven.Set(p.Origin, p.At)
		} else {
			r.proven.Delete(p.Origin)
		}
	}
	return nil
}

// Plan plans the turn again, after those that were planned before it.
func (r *Replay) Plan() plan.Result {
	if r.Plans == 0 {
		r.Since = r.turn.Time()
	}
	var result plan.Result
	result, r.past = plan.Plan(r.turn.Inputs, r.past)
	r.Plans++
	r.result = &result
	return result
}

// Forget makes the next plan one without a past.
func (r *Replay) Forget() { r.past, r.Plans = plan.Past{}, 0 }

// For returns the inputs of the turn for another node; what only this one knows of itself is left out.
func (r *Replay) For(self plan.Self) plan.Inputs {
	in := r.turn.Inputs
	out := plan.Inputs{State: in.State, Self: self, Config: in.Config, Now: in.Now}
	if self.Cluster == in.Self.Cluster { // what this node measured goes for its neighbours
		out.Far = in.Far
	}
	return out
}
