package api

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// asked are daemons that answer at noon, by what they hold of the record "east/e1", or "east": a stamp
// and, after "<", the node that passed it on some seconds before, or "self" for what they wrote.
type asked map[string]string

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// ask returns what a daemon says; "-" is no answer, and "old" one of an earlier version.
func (a asked) ask(origin string) func(string) (Told, error) {
	return func(name string) (Told, error) {
		says, known := a[name]
		if to, is := strings.CutPrefix(says, "is "); is { // any daemon of a cluster
			return a.ask(origin)(to)
		}
		switch {
		case !known:
			return Told{}, &Failure{Message: name + " is elsewhere", Cause: ErrUnasked}
		case says == "-":
			return Told{}, &Failure{Message: name + " is silent", Try: "start it"}
		}
		return Told{MemberList: memberOf(name, origin, says)}, nil
	}
}

// memberOf is what a daemon says of a record.
func memberOf(name, origin, says string) *MemberList {
	split := func(s string) (c, n string) { c, n, _ = strings.Cut(s, "/"); return c, n }
	cluster, node := split(name)
	l := &MemberList{SeenFrom: Viewpoint{Cluster: cluster, Node: node, Time: noon}, Items: []Member{
		{Cluster: "west", Node: "w1", State: Alive, Stamp: "1/1"}, {Cluster: "west", Node: "w2", State: Alive}, {Cluster: "west", Node: "w3", State: Alive},
	}}
	m := Member{State: Alive}
	m.Cluster, m.Node = split(origin)
	words := strings.Fields(says)
	switch words[0] {
	case "none":
		return l
	case "refused":
		m.State = NotPinned
	case "old":
		l.Items = nil
	case "clock":
		ahead := -2.0
		m.Stamp, m.RTT, m.Ahead = words[1], 10, &ahead
	default:
		m.Stamp = words[0]
	}
	if i := slices.Index(words, "<"); i >= 0 {
		var ago float64
		_, _ = fmt.Sscan(words[i+2], &ago)
		at := noon.Add(-time.Duration(ago * float64(time.Second)))
		if words[i+1] == "self" {
			m.Written = at
		} else {
			m.From, m.Received = words[i+1], at
		}
	}
	l.Items = append(l.Items, m)
	return l
}

// TestTrace: a record is followed to its writer; a trace says where it hangs, and where its way cannot be
// followed.
func TestTrace(t *testing.T) {
	for _, c := range []struct {
		what    string
		origin  string
		daemons asked
		outcome TraceOutcome
		hops    string // "…" is before those that are apart, "?" before those that gave no answer
		says    []string
	}{
		{"all hold the last version", "east/e1", asked{"west/w1": "5/2 < west/w2 10", "west/w2": "5/2 < east/e1 10.1", "east/e1": "5/2 < self 10.2"},
			TraceCurrent, "west/w1 west/w2 east/e1", nil},
		{"this node wrote it", "west/w1", asked{"west/w1": "5/2 < self 3"}, TraceCurrent, "west/w1", nil},
		{"it hangs", "east/e1", asked{"west/w1": "5/2 < west/w2 90", "west/w2": "5/10 < east/e1 60", "east/e1": "5/10 < self 60"},
			TraceHangs, "west/w1 west/w2 east/e1", []string{"hangs between west/w2 and west/w1: west/w2 got 5/10 1m00s ago, and west/w1 still holds 5/2"}},
		{"it hangs at its writer", "east/e1", asked{"west/w1": "5/9 < east/e1 90", "east/e1": "6/1 < self 60"},
			TraceHangs, "west/w1 east/e1", []string{"hangs between east/e1 and west/w1: east/e1 wrote 6/1 1m00s ago"}},
		{"it is on its way", "east/e1", asked{"west/w1": "5/2 < east/e1 90", "east/e1": "5/3 < self 1.5"},
			TraceComing, "west/w1 east/e1", []string{"on its way: east/e1 wrote 5/3 1.5s ago"}},
		{"it hangs, and another version is on its way", "east/e1", asked{"west/w1": "5/1 < west/w2 90", "west/w2": "5/2 < east/e1 90", "east/e1": "5/3 < self 1.5"},
			TraceHangs, "west/w1 west/w2 east/e1", []string{"hangs between west/w2 and west/w1", "on its way: east/e1"}},
		{"a hop does not answer, and the writer does", "east/e1", asked{"west/w1": "5/2 < west/w2 90", "west/w2": "-", "east/e1": "5/2 < self 90"},
			TraceCurrent, "west/w1 ?west/w2 …east/e1", []string{"west/w2 is silent"}},
		{"a hop does not answer, and the writer has a newer version", "east/e1", asked{"west/w1": "5/2 < west/w2 90", "west/w2": "-", "east/e1": "5/3 < self 90"},
			TraceHangs, "west/w1 ?west/w2 …east/e1", []string{"hangs between east/e1 and west/w1", "west/w2 is silent"}},
		{"the writer does not answer", "east/e1", asked{"west/w1": "5/2 < east/e1 90", "east/e1": "-"},
			TraceUnknown, "west/w1 ?east/e1", []string{"east/e1 is silent"}},
		{"another cluster", "east", asked{"west/w1": "5/2 < east/e2 90"}, TraceUnknown, "west/w1 ?east/e2", []string{"east/e2 is elsewhere"}},
		{"the way crosses a third cluster, and goes on in that of the writer", "east",
			asked{"west/w1": "5/2 < north/n1 90", "east": "is east/e1", "east/e1": "5/2 < east/e2 90", "east/e2": "5/2 < self 90"},
			TraceCurrent, "west/w1 ?north/n1 …east/e1 east/e2", []string{"north/n1 is elsewhere"}},
		{"the way leaves the cluster of the writer", "west", asked{"west/w1": "5/2 < north/n1 90", "west": "is west/w1", "west/w2": "-", "west/w3": "5/2 < self 91"},
			TraceCurrent, "west/w1 ?north/n1 …west/w3", []string{"north/n1 is elsewhere"}},
		{"no daemon of the cluster has written its record in this life", "west", asked{"west/w1": "5/2", "west": "is west/w1", "west/w2": "5/2", "west/w3": "5/2 < west/w1 90"},
			TraceUnknown, "west/w1", []string{"west/w1 has read the record from its disk"}},
		{"an earlier version that says who passed it on", "east/e1", asked{"west/w1": "5/2 < west/w2 90", "west/w2": "old < east/e1 91", "east/e1": "5/2 < self 92"},
			TraceCurrent, "west/w1 west/w2 east/e1", []string{"straitd on west/w2 is of an earlier version"}},
		{"an earlier version that does not", "east/e1", asked{"west/w1": "old"}, TraceUnknown, "west/w1 ?east/e1",
			[]string{"straitd on west/w1 is of an earlier version", "east/e1 is elsewhere"}},
		{"a hang behind an earlier version", "east/e1", asked{"west/w1": "5/1 < west/w2 90", "west/w2": "old < east/e1 91", "east/e1": "5/2 < self 92"},
			TraceHangs, "west/w1 west/w2 east/e1", []string{"hangs between east/e1 and west/w1", "straitd on west/w2 is of an earlier version"}},
		{"read from disk", "east", asked{"west/w1": "5/2"}, TraceUnknown, "west/w1 ?east", []string{"west/w1 has read the record from its disk", "east is elsewhere"}},
		{"read from disk, and the last version", "east/e1", asked{"west/w1": "5/2", "east/e1": "5/2"},
			TraceCurrent, "west/w1 …east/e1", []string{"west/w1 has read the record from its disk"}},
		{"read from disk, and not the last version", "east/e1", asked{"west/w1": "5/2", "east/e1": "5/3"},
			TraceHangs, "west/w1 …east/e1", []string{"hangs between east/e1 and west/w1: east/e1 holds 5/3, and west/w1 still holds 5/2", "from its disk"}},
		{"a loop", "east/e1", asked{"west/w1": "5/2 < west/w2 90", "west/w2": "5/3 < west/w1 91", "east/e1": "5/3 < self 92"},
			TraceHangs, "west/w1 west/w2 …east/e1", []string{"hangs between west/w2 and west/w1", "the way leads back to west/w1"}},
		{"no record", "east/e1", asked{"west/w1": "none"}, TraceUnknown, "west/w1 ?east/e1", []string{"east/e1 is elsewhere", "west/w1 holds no record of east/e1"}},
		{"no record, and there is one", "east/e1", asked{"west/w1": "none", "east/e1": "5/2 < self 60"}, TraceHangs, "west/w1 …east/e1",
			[]string{"hangs between east/e1 and west/w1: east/e1 wrote 5/2 1m00s ago, and west/w1 holds none"}},
		{"refused", "east", asked{"west/w1": "refused", "east": "is east/e1", "east/e1": "5/2 < self 60"}, TraceHangs, "west/w1 …east/e1",
			[]string{"west/w1 refuses the records of cluster east"}},
		{"a hop that has lost what it had", "east/e1", asked{"west/w1": "5/3 < west/w2 90", "west/w2": "5/2 < east/e1 99", "east/e1": "5/3 < self 91"},
			TraceCurrent, "west/w1 west/w2 …east/e1", []string{"west/w2 holds an older version than the hop before"}},
		{"a hop that has lost what it had, before one that is newer", "east/e1", asked{"west/w1": "5/3 < west/w2 90", "west/w2": "none", "east/e1": "5/4 < self 91"},
			TraceHangs, "west/w1 west/w2 …east/e1", []string{"hangs between east/e1 and west/w1", "west/w2 holds an older version than the hop before"}},
		{"the first node is of an earlier version", "east/e1", asked{"west/w1": "old < east/e1 90", "east/e1": "5/3 < self 91"},
			TraceUnknown, "west/w1 east/e1", []string{"straitd on west/w1 is of an earlier version"}},
	} {
		start := "west/w1"
		got := NewTrace(start, c.origin, c.daemons.ask(c.origin))
		var hops []string
		for _, h := range got.Hops {
			name := h.Node
			if h.Apart && h.Error == "" {
				name = "…" + name
			}
			if h.Error != "" {
				name = "?" + name
			}
			hops = append(hops, name)
		}
		if got.Outcome != c.outcome || strings.Join(hops, " ") != c.hops || len(got.Findings) != len(c.says) {
			t.Errorf("%s: %s by %q, want %s by %q; %+v", c.what, got.Outcome, hops, c.outcome, c.hops, got.Findings)
			continue
		}
		for i, f := range got.Findings {
			if !strings.Contains(f.Message, c.says[i]) {
				t.Errorf("%s: says %q, want %q", c.what, f.Message, c.says[i])
			}
		}
	}
}

// TestTraceTook: how long a hop took is told as exactly as clocks are known, and not at all if they are
// not, or if the two hold different versions.
func TestTraceTook(t *testing.T) {
	daemons := asked{"west/w1": "clock 5/2 < east/e1 10", "east/e1": "5/2 < self 12.5"}
	sent := noon.Add(-time.Hour) // by another clock
	slow := func(name string, of, came time.Duration) func(string) (Told, error) {
		return func(n string) (Told, error) {
			told, err := daemons.ask("east/e1")(n)
			if told.Sent, told.Came = sent, sent.Add(of); n == name {
				told.Came = sent.Add(came)
			}
			return told, err
		}
	}
	far := func(name string) (Told, error) { // of which only the clock of the first is known, by the second
		told, err := asked{"west/w1": "5/2 < east/e1 10", "east/e1": "5/2 < self 12.5"}.ask("east/e1")(name)
		if ahead := 2.1; name == "east/e1" {
			told.Items[0].RTT, told.Items[0].Ahead = 10, &ahead
		}
		return told, err
	}
	for _, c := range []struct {
		what         string
		ask          func(string) (Told, error)
		took, within float64 // -1: not known
	}{
		{"by a ping: the clock of e1 is 2 s behind", daemons.ask("east/e1"), 0.5, 0.005},
		{"by a ping of the next hop: the clock of w1 is 2.1 s ahead", far, 0.4, 0.005},
		{"by when they were asked, which is more exact", slow("", time.Millisecond, 0), 2.5, 0.001},
		{"by a ping, which is more exact", slow("east/e1", time.Millisecond, time.Second), 0.5, 0.005},
		{"no clock is known", asked{"west/w1": "5/2 < east/e1 10", "east/e1": "5/2 < self 12"}.ask("east/e1"), -1, 0},
		{"another version", asked{"west/w1": "clock 5/2 < east/e1 10", "east/e1": "5/3 < self 12"}.ask("east/e1"), -1, 0},
	} {
		got := NewTrace("west/w1", "east/e1", c.ask).Hops[0]
		took := -1.0
		if got.Took != nil {
			took = *got.Took
		}
		if d := took - c.took; d > 1e-6 || d < -1e-6 || took >= 0 && (got.Within > c.within+1e-6 || got.Within < c.within-1e-6) {
			t.Errorf("%s: took %v within %v, want %v within %v", c.what, took, got.Within, c.took, c.within)
		}
	}
}

// TestTraceEnds: a trace asks each daemon at most twice, whatever they say.
func TestTraceEnds(t *testing.T) {
	const n = 50
	asks := 0
	ask := func(name string) (Told, error) {
		asks++
		var i int
		if _, err := fmt.Sscanf(name, "west/w%d", &i); err != nil {
			return Told{}, errors.New("there is none")
		}
		return Told{MemberList: memberOf(name, "east", fmt.Sprintf("5/%d < west/w%d 60", i%7+asks, (i*3+1)%n))}, nil
	}
	got := NewTrace("west/w1", "east", ask)
	if asks > 2*n || len(got.Hops) > n+1 || got.Outcome == TraceCurrent {
		t.Errorf("%d questions, %d hops, %s", asks, len(got.Hops), got.Outcome)
	}
}

// TestTraceList: what needs a look comes first.
func TestTraceList(t *testing.T) {
	l := NewTraceList(Viewpoint{}, "", []Trace{{Origin: "b", Outcome: TraceCurrent}, {Origin: "a", Outcome: TraceCurrent}, {Origin: "d", Outcome: TraceUnknown}, {Origin: "c", Outcome: TraceHangs}})
	var order []string
	for _, x := range l.Items {
		order = append(order, x.Origin)
	}
	if !slices.Equal(order, []string{"c", "d", "a", "b"}) || l.Count(TraceCurrent) != 2 {
		t.Errorf("%q, %d current", order, l.Count(TraceCurrent))
	}
}
