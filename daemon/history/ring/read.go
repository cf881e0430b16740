package ring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"strait.io/strait/clustermesh/gossip/statelog"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/history"
	"strait.io/strait/internal/problem"
)

// replay reads the file until its end, or until each, which is called after each complete turn,
// returns false. It returns how many bytes are good.
func (f file) replay(r *history.Replay, each func(*history.Replay) bool) (good int64, err error) {
	in, err := os.Open(f.path)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	frames, err := statelog.NewFrameReader(in, magic, history.MaxFrame)
	if err != nil {
		return 0, err
	}
	good = int64(len(magic))
	at := good
	for {
		body, size, err := frames.Next()
		if err != nil {
			return good, nil // the end, or a part of what is being written
		}
		complete, err := r.Frame(body)
		if err != nil {
			return good, err
		}
		if at += size; !r.More() {
			good = at
		}
		if complete && !each(r) {
			return good, nil
		}
	}
}

// passes reports whether a file is left out for an error: it was removed while others were read, or another
// version wrote it.
func passes(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, statelog.ErrNotLog)
}

// Span is what a ring holds.
type Span struct {
	Begins time.Time // zero if it holds nothing
	Bytes  int64
}

// begins returns when the first turn of a file was.
func (f file) begins() (at time.Time) {
	_, _ = f.replay(&history.Replay{}, func(r *history.Replay) bool {
		at = r.Turn().Time()
		return false
	})
	return at
}

// Items returns what changed between two moments, at most the newest of it, and how many were left out. An
// empty until is now.
func (r *Ring) Items(since, until time.Time, keep func(api.HistoryItem) bool, most int) (span Span, out []api.HistoryItem, leftOut int, err error) {
	files, err := r.readable()
	if err != nil || len(files) == 0 {
		return span, nil, 0, err
	}
	for _, f := range files {
		span.Bytes += f.size
	}
	span.Begins = files[0].begins()
	first := 0
	for first < len(files)-1 && files[first].modified.Before(since) {
		first++
	}
	for _, f := range files[first:] {
		replay := &history.Replay{}
		_, err := f.replay(replay, func(r *history.Replay) bool {
			item, has := r.Item()
			if !has || item.Time.Before(since) || !until.IsZero() && item.Time.After(until) || !keep(item) {
				return true
			}
			if out = append(out, item); len(out) > 2*most {
				leftOut += len(out) - most
				out = slices.Delete(out, 0, len(out)-most)
			}
			return true
		})
		if err != nil && !passes(err) {
			return span, nil, 0, fmt.Errorf("read %s: %w", f.path, err)
		}
	}
	if n := len(out) - most; n > 0 {
		out, leftOut = out[n:], leftOut+n
	}
	return span, out, leftOut, nil
}

// readable returns the files; none if there is no history yet.
func (r *Ring) readable() ([]file, error) {
	files, err := r.files()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}

// window is how long before a moment plans are made again, so that ramps and drains are where they were, and
// maxPlans how many plans.
const (
	window   = 10 * time.Minute
	maxPlans = 2000
)

// Moment is what was known at a moment of the past.
type Moment struct {
	*history.Replay
	// Next is when the next turn was that was noted; zero if there is none. Started is set if a daemon
	// started with it.
	Next    time.Time
	Started bool
}

// At returns the last turn before a moment, with its plan. The error is an *api.Unnoted if there is none.
func (r *Ring) At(at time.Time) (*Moment, error) {
	files, err := r.readable()
	if err != nil {
		return nil, err
	}
	for i := len(files) - 1; i >= 0; i-- {
		seq, planned, err := find(files[i:min(i+2, len(files))], at)
		if err != nil {
			return nil, err
		}
		if seq.seq > 0 {
			return r.again(files, i, seq, planned)
		}
	}
	try := "this node began to note what happens later"
	if len(files) > 0 {
		if begins := files[0].begins(); !begins.IsZero() {
			try = fmt.Sprintf("ask for a later moment: the oldest that this node has noted is %s", begins.Format(time.RFC3339))
		}
	}
	return nil, &api.Unnoted{Refusal: problem.Refusal{Message: fmt.Sprintf("nothing is noted of %s", at.Format(time.RFC3339)), Try: try}}
}

// found is a turn, and when the one after it was.
type found struct {
	seq     uint64
	time    time.Time
	next    time.Time
	started bool
}

// find returns the last turn of the first file that was not after a moment, and how many turns
// there are in the window before it.
func find(files []file, at time.Time) (f found, planned int, err error) {
	var times []time.Time
	for i, file := range files {
		replay := &history.Replay{}
		_, err := file.replay(replay, func(r *history.Replay) bool {
			t := r.Turn()
			if i == 0 && !t.Time().After(at) {
				f = found{seq: r.Seq(), time: t.Time()}
				times = append(times, t.Time())
				return true
			}
			if f.seq > 0 && f.next.IsZero() && r.Seq() > f.seq {
				f.next, f.started = t.Time(), t.Start != ""
			}
			return i == 0 || f.next.IsZero()
		})
		if err != nil && !passes(err) {
			return f, 0, err
		}
		if f.seq == 0 || !f.next.IsZero() {
			break
		}
	}
	for _, t := range times {
		if t.After(f.time.Add(-window)) {
			planned++
		}
	}
	return f, planned, nil
}

// again makes the plans up to a turn of a file again.
func (r *Ring) again(files []file, i int, target found, planned int) (*Moment, error) {
	m := &Moment{Replay: &history.Replay{}, Next: target.next, Started: target.started}
	from := i
	if i > 0 && planned < maxPlans {
		from--
	}
	last := false
	for _, f := range files[from : i+1] {
		_, err := f.replay(m.Replay, func(r *history.Replay) bool {
			last = r.Seq() >= target.seq
			if last || r.Turn().Time().After(target.time.Add(-window)) && target.seq-r.Seq() < maxPlans {
				r.Plan()
			} else {
				r.Forget()
			}
			return !last
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f.path, err)
		}
		if last {
			return m, nil
		}
	}
	return nil, problem.Refuse("ask again", "the history of that moment was removed while it was read")
}
