package observe

import (
	"cmp"
	"slices"

	"strait.io/strait/clustermesh"
)

// Links are whom streams reach: other clusters that are heard, and nodes of this one that are not any
// more. Some this node sees itself, some the relays of its cluster report. A report is believed as
// far as one's own cluster: that another one is heard makes its members Reported, and a silent node
// is probed. Neither withdraws anything. The zero value is of a node that sees nothing.
type Links struct {
	own      Sight
	reported map[clustermesh.Origin]Report
	changed  bool // since Update
}

// Sight is what one node sees on its streams, both sorted: other clusters of which it hears a daemon,
// and nodes of its own whose streams have ended or carry nothing.
type Sight struct {
	Heard  []clustermesh.ClusterName
	Silent []clustermesh.NodeName
}

// Report is what a relay sees itself, and what others of its cluster report to it.
type Report struct{ Own, Via Sight }

func (s Sight) equal(other Sight) bool {
	return slices.Equal(s.Heard, other.Heard) && slices.Equal(s.Silent, other.Silent)
}

// Equal reports whether two reports say the same.
func (r Report) Equal(other Report) bool { return r.Own.equal(other.Own) && r.Via.equal(other.Via) }

// maxReported bounds how many clusters and nodes one report names.
const maxReported = 4096

// bounded returns what is valid, sorted.
func (s Sight) bounded() Sight {
	return Sight{
		distinct(s.Heard, func(c clustermesh.ClusterName) error { return clustermesh.CheckName(string(c)) }),
		distinct(s.Silent, func(n clustermesh.NodeName) error { return clustermesh.CheckName(string(n)) }),
	}
}

func distinct[N cmp.Ordered](names []N, check func(N) error) []N {
	valid := slices.DeleteFunc(slices.Clone(names[:min(len(names), maxReported)]), func(n N) bool { return check(n) != nil })
	slices.Sort(valid)
	return slices.Compact(valid)
}

func (s Sight) with(other Sight) Sight {
	return Sight{slices.Concat(s.Heard, other.Heard), slices.Concat(s.Silent, other.Silent)}
}

// Report takes a report of a relay of this node's cluster.
func (l *Links) Report(by clustermesh.Origin, r Report) {
	if l.reported == nil {
		l.reported = map[clustermesh.Origin]Report{}
	}
	l.reported[by], l.changed = Report{r.Own.bounded(), r.Via.bounded()}, true
}

// Update sets what this node sees itself, and forgets the reports of nodes to which there is no
// stream any more. It reports whether anything has changed since it was called last.
func (l *Links) Update(own Sight, hasStream func(clustermesh.Origin) bool) (changed bool) {
	changed = l.changed || !own.equal(l.own)
	l.own, l.changed = own, false
	for o := range l.reported {
		if !hasStream(o) {
			delete(l.reported, o)
			changed = true
		}
	}
	return changed
}

// Own returns what this node reports to others of its cluster.
func (l *Links) Own() Report {
	var via Sight
	for _, r := range l.reported {
		via = via.with(r.Own) // what others report to it can be what this node reported
	}
	return Report{l.own, via.bounded()}
}

// All returns what this node sees itself or by reports.
func (l *Links) All() Sight {
	all := l.own
	for _, r := range l.reported {
		all = all.with(r.Own).with(r.Via)
	}
	return all.bounded()
}
