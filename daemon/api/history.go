package api

import (
	"slices"
	"strings"
	"time"

	"strait.io/strait/internal/problem"
)

// KindHistory is the kind of a History.
const KindHistory = "History"

// History is the answer of GET /v1/history: what changed on a node and why, oldest first.
type History struct {
	Meta
	SeenFrom Viewpoint `json:"seenFrom"`
	// Begins is the oldest moment that the node has noted; zero if it has none.
	Begins time.Time `json:"begins,omitzero"`
	// Bytes is how much of the disk it takes.
	Bytes int64 `json:"bytes"`
	// LeftOut counts the oldest items that were asked for and that the answer has no room for.
	LeftOut int           `json:"leftOut,omitempty"`
	Items   []HistoryItem `json:"items"`
}

// HistoryItem is what one turn of a daemon's loop changed, and why.
type HistoryItem struct {
	// Seq orders the items of a node; clocks can be set back.
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	// Causes are what differed from the turn before, the most telling first.
	Causes []Cause `json:"causes"`
	// Effects are the services whose connections go elsewhere since.
	Effects []Effect `json:"effects,omitempty"`
	// MoreCauses and MoreEffects count those that were left out.
	MoreCauses  int `json:"moreCauses,omitempty"`
	MoreEffects int `json:"moreEffects,omitempty"`
	// Peers and Routes are by how many tunnels and routes there are more, or less.
	Peers  int `json:"peers,omitempty"`
	Routes int `json:"routes,omitempty"`
	// Error is why the kernel does not hold all of the plan; empty if it does.
	Error string `json:"error,omitempty"`
	// Missed counts the turns before this one that were not noted by themselves, because the disk was
	// slower than the turns. What they changed is in this item.
	Missed int `json:"missed,omitempty"`
}

// Cause is one thing that differed.
type Cause struct {
	Kind CauseKind `json:"kind"`
	// Subject is what it is about: "node us-west/n4", "cluster us-west", "shop/cart".
	Subject string `json:"subject"`
	// Text follows the subject: "is dead".
	Text string `json:"text"`
}

// CauseKind is the kind of a Cause.
type CauseKind string

// The kinds, the most telling first.
const (
	CauseStarted  CauseKind = "started"
	CauseDead     CauseKind = "death"
	CauseContact  CauseKind = "contact"
	CauseTunnel   CauseKind = "tunnel"
	CauseMember   CauseKind = "member"
	CauseDrain    CauseKind = "drain"
	CauseExport   CauseKind = "export"
	CauseEndpoint CauseKind = "endpoint"
	CauseConfig   CauseKind = "config"
	CauseLeader   CauseKind = "leader"
	CauseRecord   CauseKind = "record"
	CauseProblem  CauseKind = "problem"
	CauseTime     CauseKind = "time"
)

// CauseKinds lists the kinds, the most telling first.
var CauseKinds = []CauseKind{CauseStarted, CauseDead, CauseContact, CauseTunnel, CauseMember, CauseDrain, CauseExport,
	CauseEndpoint, CauseConfig, CauseLeader, CauseRecord, CauseProblem, CauseTime}

// Effect is what became of one service.
type Effect struct {
	Service string `json:"service"`
	// From and To are where new connections went and go; empty for a service that was not there, or is not
	// any more.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Clusters are those of which endpoints came into use or left it.
	Clusters []ClusterEffect `json:"clusters,omitempty"`
	// Why is the reason of an endpoint that is not in use any more.
	Why string `json:"why,omitempty"`
}

// ClusterEffect counts the endpoints of a cluster that came into use, and those that left it.
type ClusterEffect struct {
	Cluster   string `json:"cluster"`
	Added     int    `json:"added,omitempty"`
	Withdrawn int    `json:"withdrawn,omitempty"`
}

// HistoryQuery is what is asked of a history. Its zero value asks for everything.
type HistoryQuery struct {
	// Since and Until bound the time; zero is no bound.
	Since, Until time.Time
	// Name is that of a service, a cluster or a node; empty is everything.
	Name string
}

// Keeps reports whether an item is asked for.
func (q HistoryQuery) Keeps(i HistoryItem) bool {
	return !i.Time.Before(q.Since) && (q.Until.IsZero() || !i.Time.After(q.Until)) && (q.Name == "" || i.About(q.Name))
}

// About reports whether an item is about a service, a node or a cluster with its nodes.
func (i HistoryItem) About(name string) bool {
	if slices.ContainsFunc(i.Effects, func(e Effect) bool { return e.Service == name }) {
		return true
	}
	return slices.ContainsFunc(i.Causes, func(c Cause) bool {
		kind, object, named := strings.Cut(c.Subject, " ")
		if !named {
			object = kind
		}
		object = strings.TrimPrefix(object, "to ")
		return object == name || named && strings.HasPrefix(object, name+"/") || slices.Contains(strings.Fields(c.Text), name)
	})
}

// Keep returns the history without what is not asked for.
func (h History) Keep(q HistoryQuery) *History {
	h.Items = slices.DeleteFunc(slices.Clone(h.Items), func(i HistoryItem) bool { return !q.Keeps(i) })
	return &h
}

// Past is which moment of the past an answer is of.
type Past struct {
	// At is when the last turn was that was noted before the moment that was asked for.
	At time.Time `json:"at"`
	// Next is when the next turn was that was noted; zero if there is none. Until then, nothing differed,
	// unless Started is true: then a daemon started, and when the one before ended is not known.
	Next    time.Time `json:"next,omitzero"`
	Started bool      `json:"started,omitempty"`
	// Since is from when on the turns before were planned again: where ramps and contested claims were
	// before that is not known.
	Since time.Time `json:"since"`
	// Error is why the kernel did not hold all of the plan then; empty if it did.
	Error string `json:"error,omitempty"`
}

// Unnoted means that nothing is noted of a moment.
type Unnoted struct{ problem.Refusal }

// Unwrap returns what is refused.
func (u *Unnoted) Unwrap() error { return &u.Refusal }

// NewHistory makes an answer of items.
func NewHistory(from Viewpoint, begins time.Time, bytes int64, items []HistoryItem) *History {
	return &History{Meta: Meta{APIVersion, KindHistory}, SeenFrom: from, Begins: begins, Bytes: bytes, Items: orEmpty(items)}
}

// Endpoints counts the endpoints that came into use, and those that left it, over all services.
func (i HistoryItem) Endpoints() (added, withdrawn int) {
	for _, e := range i.Effects {
		for _, c := range e.Clusters {
			added, withdrawn = added+c.Added, withdrawn+c.Withdrawn
		}
	}
	return added, withdrawn
}
