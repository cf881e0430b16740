package history

import (
	"slices"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/plan"
)

// Recorder makes frames of turns. One goroutine uses it. The zero Recorder begins a history.
type Recorder struct {
	last *Turn
	seq  uint64
	w    writer
}

// Continue makes a Recorder that goes on after the last turn of a Replay, which must have a plan.
func Continue(r *Replay) *Recorder { return &Recorder{last: r.Turn(), seq: r.seq} }

// Seq is the number of the last turn that was noted.
func (r *Recorder) Seq() uint64 { return r.seq }

// Note returns the frames of a turn, in the order in which they are written; none if it does not differ from
// the last one. Missed is how many turns there were since then. The frames are valid until the next call.
func (r *Recorder) Note(t *Turn, missed int) (frames [][]byte, err error) {
	item, differs := ItemOf(r.last, t)
	if r.last != nil && !differs && sameInputs(r.last, t) && samePlan(r.last.Result, t.Result) {
		return nil, nil
	}
	var noted *api.HistoryItem
	if differs {
		item.Missed, noted = missed, &item
	}
	all, err := messages(r.last, t, r.seq+1, noted)
	if err != nil {
		return nil, err
	}
	r.seq++
	r.last = t
	return r.frames(all)
}

// Whole returns the frames of all that is known, without an item: a reader can begin with them.
func (r *Recorder) Whole() (frames [][]byte, err error) {
	r.w.begun = false
	if r.last == nil {
		return nil, nil
	}
	all, err := messages(nil, r.last, r.seq, nil)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Start = "" // the life began before
	}
	return r.frames(all)
}

func (r *Recorder) frames(all []message) (out [][]byte, err error) {
	for _, m := range all {
		f, err := r.w.frame(m)
		if err != nil {
			return nil, err
		}
		out = append(out, append([]byte(nil), f...))
	}
	return out, nil
}

// sameInputs reports whether two turns were planned from the same, but for the time.
func sameInputs(a, b *Turn) bool {
	x, y := &a.Inputs.State, &b.Inputs.State
	for range y.Records.Since(x.Records) {
		return false
	}
	for range y.Contacts.Since(x.Contacts) {
		return false
	}
	for range y.Proven.Since(x.Proven) {
		return false
	}
	return b.Start == "" && sameSettings(a, b)
}

// samePlan reports whether no service was planned again, as happens while one ramps or drains. Each such step
// counts for the steps after it.
func samePlan(a, b *plan.Result) bool {
	return slices.Equal(a.Imports, b.Imports) && slices.Equal(a.Globals, b.Globals)
}
