package api

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// KindTraces is the kind of a TraceList.
const KindTraces = "TraceList"

// TraceList is the way of some records to one node, as the daemons on it tell.
type TraceList struct {
	Meta
	SeenFrom Viewpoint `json:"seenFrom"`
	// Service is the one whose records these are; empty if a record was named.
	Service string  `json:"service,omitempty"`
	Items   []Trace `json:"items"`
}

// Trace is the way of one record.
type Trace struct {
	// Origin is its writer: CLUSTER, for which its leader writes, or CLUSTER/NODE.
	Origin  string       `json:"origin"`
	Outcome TraceOutcome `json:"outcome"`
	// Hops begin with the node that was asked, and lead to the writer as far as the way is known.
	Hops []Hop `json:"hops"`
	// Findings say where the record hangs, and where its way could not be followed.
	Findings []TraceFinding `json:"findings,omitempty"`
}

// TraceOutcome is what a trace showed.
type TraceOutcome string

// TraceOutcomes are all, the worst first.
var TraceOutcomes = []TraceOutcome{TraceHangs, TraceComing, TraceUnknown, TraceCurrent}

// Outcomes of traces.
const (
	// TraceCurrent: the first node holds what the writer wrote last.
	TraceCurrent TraceOutcome = "current"
	// TraceComing: a newer version is on its way.
	TraceComing TraceOutcome = "coming"
	// TraceHangs: a node holds an older version than the next one, and has for longer than records take.
	TraceHangs TraceOutcome = "hangs"
	// TraceUnknown: no daemon that was asked wrote the record.
	TraceUnknown TraceOutcome = "unknown"
)

// TraceFinding is something about a way, with what to do about it.
type TraceFinding struct {
	Outcome TraceOutcome `json:"outcome"`
	Message string       `json:"message"`
	Try     string       `json:"try,omitempty"`
}

// Hop is a node on the way of a record.
type Hop struct {
	Node string `json:"node"`
	// Stamp is the version that it holds; empty if it holds none, or if that is not known.
	Stamp string `json:"stamp,omitempty"`
	// At is when that came, or was written if Written is true, by the clock of the node, and Age how
	// old that was when the node answered, in seconds. Both are missing for what was read from disk.
	At  time.Time `json:"at,omitzero"`
	Age float64   `json:"age,omitempty"`
	// From is the node that passed it on, which is the next hop.
	From    string `json:"from,omitempty"`
	Written bool   `json:"written,omitempty"`
	// Apart is true if nothing is known of how the record came from here to the hop before.
	Apart bool `json:"apart,omitempty"`
	// Took is how many seconds after the next hop the same version came here, and Within by how much
	// that can be wrong, since each machine has its own clock. Took is missing if it is not known.
	Took   *float64 `json:"took,omitempty"`
	Within float64  `json:"within,omitempty"`
	// Error is why there is no answer of the node. Unasked is true if none of its cluster could be asked.
	Error   string `json:"error,omitempty"`
	Unasked bool   `json:"unasked,omitempty"`

	told    Told
	refused bool
}

// Told is what a daemon says of records, and when it was asked, and answered, by one clock; both are zero if
// that is not known.
type Told struct {
	*MemberList
	Sent, Came time.Time
}

// name is that of the node that answered.
func (t Told) name() string { return t.SeenFrom.Cluster + "/" + t.SeenFrom.Node }

// member returns what is said of a record, which may be nothing.
func (t Told) member(origin string) Member {
	for _, m := range t.Items {
		if m.Name() == origin {
			return m
		}
	}
	return Member{}
}

// earlier reports whether the daemon is of a version that does not say what it holds. A daemon holds a
// record of its own node at least.
func (t Told) earlier() bool {
	for _, m := range t.Items {
		if m.Stamp != "" {
			return false
		}
	}
	return true
}

// settled is after how long a record that has not passed a hop hangs there: records take a second at most
// where all is well.
const settled = 5 * time.Second

// ErrUnasked means that no daemon of a cluster can be asked from here.
var ErrUnasked = errors.New("no daemon of the cluster was asked")

// NewTraceList makes an answer of traces, and puts those first that need a look.
func NewTraceList(from Viewpoint, service string, items []Trace) *TraceList {
	slices.SortStableFunc(items, func(a, b Trace) int {
		return cmp.Or(cmp.Compare(a.Outcome.rank(), b.Outcome.rank()), cmp.Compare(a.Origin, b.Origin))
	})
	return &TraceList{Meta{APIVersion, KindTraces}, from, service, orEmpty(items)}
}

// Count returns how many records have an outcome.
func (l *TraceList) Count(o TraceOutcome) (n int) {
	for _, t := range l.Items {
		if t.Outcome == o {
			n++
		}
	}
	return n
}

// NewTrace follows a record from a node to its writer. ask returns what the daemon of a node says, or any
// daemon of a cluster. Where the way cannot be followed, the trace goes on at the writer.
func NewTrace(start, origin string, ask func(name string) (Told, error)) Trace {
	t := &tracer{origin: origin, ask: ask, seen: map[string]bool{}}
	t.follow(start, false)
	if !t.done {
		t.follow(origin, true)
	}
	if !t.done && !strings.Contains(origin, "/") {
		t.search()
	}
	t.Origin = origin
	t.measure()
	t.judge()
	return t.Trace
}

// tracer makes a Trace.
type tracer struct {
	Trace
	origin string
	ask    func(name string) (Told, error)
	seen   map[string]bool
	done   bool // the last hop is the writer
}

// follow adds hops from a node on.
func (t *tracer) follow(name string, apart bool) {
	for name != "" {
		told, err := t.ask(name)
		if err != nil {
			t.unanswered(name, apart, err)
			return
		}
		if name = told.name(); t.seen[name] {
			if !apart {
				t.find(TraceUnknown, "strait members -o wide --node "+name, "the way leads back to %s: each node passed another version on", name)
			}
			return
		}
		t.seen[name] = true
		m := told.member(t.origin)
		h := Hop{Node: name, Stamp: m.Stamp, At: m.Received, From: m.From, Apart: apart, told: told}
		if !m.Written.IsZero() {
			h.At, h.From, h.Written = m.Written, "", true
		}
		if !h.At.IsZero() {
			h.Age = max(0, told.SeenFrom.Time.Sub(h.At).Seconds())
		}
		t.Hops = append(t.Hops, h)
		if t.done = h.Written || name == t.origin && h.Stamp != ""; t.done || !t.explain(m) {
			return
		}
		name, apart = h.From, false
	}
}

// maxSearched bounds how many daemons are asked whether they wrote the record of their cluster.
const maxSearched = 20

// search goes on at the daemon that wrote the record of its cluster, if there is one among the first.
func (t *tracer) search() {
	entry, err := t.ask(t.origin)
	if err != nil {
		return
	}
	asked := 0
	for _, m := range entry.Items {
		if heard := m.State == Self || m.State == Alive || m.State == Reported; m.Cluster != t.origin || m.Node == "" || t.seen[m.Name()] || !heard {
			continue
		}
		if asked++; asked > maxSearched {
			return
		}
		if told, err := t.ask(m.Name()); err == nil && !told.member(t.origin).Written.IsZero() {
			t.follow(m.Name(), true)
			return
		}
	}
}

// unanswered adds a node that gave no answer. What a trace that goes on at the writer does not find is not
// worth a word if the way has ended for the same reason.
func (t *tracer) unanswered(name string, apart bool, err error) {
	for _, h := range t.Hops {
		if apart && h.Error != "" {
			return
		}
	}
	var f *Failure
	message, try := err.Error(), ""
	if errors.As(err, &f) {
		message, try = f.Message, f.Try
	}
	t.Hops = append(t.Hops, Hop{Node: name, Apart: apart, Error: message, Unasked: errors.Is(err, ErrUnasked)})
	t.find(TraceUnknown, try, "%s", message)
}

// explain notes what is unusual at the last hop, and reports whether the way goes on.
func (t *tracer) explain(m Member) bool {
	h := &t.Hops[len(t.Hops)-1]
	switch {
	case h.told.earlier():
		t.find(TraceUnknown, "strait version", "straitd on %s is of an earlier version: it does not say which version of the record it holds, or whether it wrote it", h.Node)
	case m.State == NotPinned:
		h.refused = true
		t.find(TraceHangs, "strait clusterset pins", "%s refuses the records of cluster %s, which is not pinned there", h.Node, m.Cluster)
	case t.lags():
		// What it passed on was another version.
		t.find(TraceUnknown, "run the same command again", "%s holds an older version than the hop before: it was asked earlier, or has lost what it had", h.Node)
		return false
	case h.Stamp != "" && h.From == "":
		t.find(TraceUnknown, "", "%s has read the record from its disk, and no newer version came since: it does not know which node passed it on", h.Node)
	}
	return h.From != ""
}

// lags reports whether the last hop holds an older version than the one before.
func (t *tracer) lags() bool {
	n := len(t.Hops)
	return n > 1 && t.Hops[n-2].Stamp != "" && compareStamps(t.Hops[n-1].Stamp, t.Hops[n-2].Stamp) < 0
}

func (t *tracer) find(outcome TraceOutcome, try, format string, args ...any) {
	t.Findings = append(t.Findings, TraceFinding{outcome, fmt.Sprintf(format, args...), try})
}

// judge compares the version of each hop with the last one that came nearer.
func (t *tracer) judge() {
	t.Outcome = TraceUnknown
	if first := t.Hops[0]; t.done && first.Error == "" && !first.told.earlier() {
		t.Outcome = TraceCurrent
	}
	var near *Hop
	for i := range t.Hops {
		far := &t.Hops[i]
		if far.Error != "" || far.told.earlier() {
			continue
		}
		if near != nil && compareStamps(near.Stamp, far.Stamp) > 0 {
			continue // it lags behind, which does not matter to those that have more
		}
		switch {
		case near == nil || near.refused || near.Stamp == far.Stamp:
		case t.onTheWay(near, far):
			t.worsen(TraceComing)
		default:
			t.worsen(TraceHangs)
			t.find(TraceHangs, fmt.Sprintf("strait status --node %[1]s, and strait ping %[2]s --node %[1]s", near.Node, far.Node),
				"the record hangs between %s and %s: %s", far.Node, near.Node, versions(near, far))
		}
		if near = far; near.refused {
			t.worsen(TraceHangs)
		}
	}
	if near != nil && near.Stamp == "" && !near.refused {
		t.find(TraceUnknown, "strait status --node "+near.Node, "%s holds no record of %s", near.Node, t.origin)
	}
	slices.SortStableFunc(t.Findings, func(a, b TraceFinding) int { return cmp.Compare(a.Outcome.rank(), b.Outcome.rank()) })
}

// worsen sets the outcome, unless the record hangs elsewhere.
func (t *tracer) worsen(to TraceOutcome) {
	if t.Outcome != TraceHangs {
		t.Outcome = to
	}
}

// rank puts what is wrong first.
func (o TraceOutcome) rank() int { return slices.Index(TraceOutcomes, o) }

// onTheWay reports whether the version that a hop lacks is so new that it may still come, and notes that.
func (t *tracer) onTheWay(near, far *Hop) bool {
	if far.At.IsZero() || seconds(far.Age) > settled+between(near.told, far.told) {
		return false
	}
	t.find(TraceComing, "run the same command again", "a newer version is on its way: %s", versions(near, far))
	return true
}

// versions says which versions two hops hold.
func versions(near, far *Hop) string {
	text := fmt.Sprintf("%s holds %s", far.Node, far.Stamp)
	switch age := Age(seconds(far.Age)); {
	case far.Written:
		text = fmt.Sprintf("%s wrote %s %s ago", far.Node, far.Stamp, age)
	case !far.At.IsZero():
		text = fmt.Sprintf("%s got %s %s ago", far.Node, far.Stamp, age)
	}
	if near.Stamp == "" {
		return fmt.Sprintf("%s, and %s holds none", text, near.Node)
	}
	return fmt.Sprintf("%s, and %s still holds %s", text, near.Node, near.Stamp)
}

// between is how long after one daemon another one was asked.
func between(a, b Told) time.Duration {
	if a.Sent.IsZero() || b.Came.IsZero() {
		return max(0, b.SeenFrom.Time.Sub(a.SeenFrom.Time))
	}
	return max(0, b.Came.Sub(a.Sent))
}

// measure finds out how long the hops took.
func (t *tracer) measure() {
	for i := range len(t.Hops) - 1 {
		h, next := &t.Hops[i], &t.Hops[i+1]
		if h.At.IsZero() || next.At.IsZero() || next.Apart || h.Stamp == "" || h.Stamp != next.Stamp {
			continue
		}
		if ahead, within, known := clocks(h.told, next.told); known {
			took := (h.At.Sub(next.At) + ahead).Seconds()
			h.Took, h.Within = &took, within.Seconds()
		}
	}
}

// clocks returns by how much the clock of b is ahead of that of a, and by how much that can be wrong: as one
// of them measured it, or by when they were asked, whichever is more exact.
func clocks(a, b Told) (ahead, within time.Duration, known bool) {
	take := func(by, wrong time.Duration) {
		if !known || wrong < within {
			ahead, within, known = by, wrong, true
		}
	}
	if m := a.member(b.name()); m.Ahead != nil {
		take(seconds(*m.Ahead), seconds(m.RTT/2000))
	}
	if m := b.member(a.name()); m.Ahead != nil {
		take(-seconds(*m.Ahead), seconds(m.RTT/2000))
	}
	if !a.Sent.IsZero() && !b.Sent.IsZero() {
		offset := func(t Told) time.Duration { return t.SeenFrom.Time.Sub(t.Sent.Add(t.Came.Sub(t.Sent) / 2)) }
		take(offset(b)-offset(a), (a.Came.Sub(a.Sent)+b.Came.Sub(b.Sent))/2)
	}
	return ahead, within, known
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// compareStamps orders versions, "EPOCH/VERSION"; none is the oldest.
func compareStamps(a, b string) int {
	number := func(s string) uint64 {
		n, _ := strconv.ParseUint(s, 10, 64)
		return n
	}
	ea, va, _ := strings.Cut(a, "/")
	eb, vb, _ := strings.Cut(b, "/")
	return cmp.Or(cmp.Compare(number(ea), number(eb)), cmp.Compare(number(va), number(vb)))
}
