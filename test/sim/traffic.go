package sim

import (
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
)

// Traffic is how much was sent: messages, heartbeats, and the bytes of both on the wire.
type Traffic struct {
	Messages, Heartbeats  int
	Bytes, HeartbeatBytes int
	// Of are the messages by kind.
	Of, BytesOf [16]int
}

// Since returns what was sent since then.
func (t Traffic) Since(then Traffic) Traffic {
	t.Messages -= then.Messages
	t.Heartbeats -= then.Heartbeats
	t.Bytes -= then.Bytes
	t.HeartbeatBytes -= then.HeartbeatBytes
	for i := range t.Of {
		t.Of[i] -= then.Of[i]
		t.BytesOf[i] -= then.BytesOf[i]
	}
	return t
}

func (t *Traffic) count(kind replica.Kind, wire int) {
	if kind == 0 {
		t.Heartbeats++
		t.HeartbeatBytes += wire
		return
	}
	t.Messages++
	t.Bytes += wire
	t.Of[min(int(kind), len(t.Of)-1)]++
	t.BytesOf[min(int(kind), len(t.Of)-1)] += wire
}

// Track follows one change until it is everywhere.
type Track struct {
	origin clustermesh.Origin
	stamp  clustermesh.Stamp
	began  time.Duration
	at     map[*Machine]time.Duration
}

// note notes which machine has what is tracked.
func (w *Network) note(m *Machine) {
	for _, t := range w.tracks {
		if _, has := t.at[m]; has {
			continue
		}
		if r, any := m.node.Record(t.origin); any && r.Stamp.Compare(t.stamp) >= 0 {
			t.at[m] = w.now - t.began
		}
	}
}

// Change publishes something new at a machine and follows it.
func (w *Network) Change(m *Machine) *Track {
	m.Publish()
	r, _ := m.node.Record(m.Self)
	t := &Track{origin: m.Self, stamp: r.Stamp, began: w.now, at: map[*Machine]time.Duration{m: 0}}
	w.tracks = append(w.tracks, t)
	return t
}

// Untrack ends all tracks.
func (w *Network) Untrack() { w.tracks = nil }

// Times are how long changes took to reach machines.
type Times struct {
	Half, Most, Max time.Duration // the median, the 99th percentile and the largest
	Missing         int           // that did not arrive
}

// TimesOf returns how long the changes took to reach all machines whose daemons run.
func (w *Network) TimesOf(tracks []*Track) (t Times) {
	var all []time.Duration
	for _, x := range tracks {
		for _, m := range w.Machines {
			if d, has := x.at[m]; has {
				all = append(all, d)
			} else if m.Runs() {
				t.Missing++
			}
		}
	}
	slices.Sort(all)
	if n := len(all); n > 0 {
		t.Half, t.Most, t.Max = all[(n-1)/2], all[(n-1)*99/100], all[n-1]
	}
	return t
}
