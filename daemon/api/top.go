package api

import (
	"cmp"
	"slices"
	"strings"
)

// KindTop is the kind of the data of strait top.
const KindTop = "TopList"

// TopBy are what the rows of a top list are.
var TopBy = []string{"services", "clusters", "nodes"}

// TopList is what nodes' clients do with services, by one of TopBy.
type TopList struct {
	Meta
	By string `json:"by"`
	// Seconds is between the two answers that rates follow from; 0 if there was only one.
	Seconds float64  `json:"seconds,omitempty"`
	Items   []TopRow `json:"items"`
	// Nodes are the nodes that were asked.
	Nodes []AskedNode `json:"nodes,omitempty"`
}

// TopRow is a service, the cluster whose backends get connections, or the node whose clients make them.
type TopRow struct {
	Name string `json:"name"`
	FlowCounts
	// New and Refused are connections per second; missing if unknown.
	New     *float64 `json:"newPerSecond,omitempty"`
	Refused *float64 `json:"refusedPerSecond,omitempty"`
	// To are the clusters that connections go to, the largest share first: of new ones, or of those
	// that are open if none was new.
	To []TopShare `json:"to,omitempty"`

	clusters map[string]*clusterSum
}

// TopShare is a cluster's share of connections, 0 to 1.
type TopShare struct {
	Cluster string  `json:"cluster"`
	Share   float64 `json:"share"`
}

// clusterSum is what a row has of one cluster.
type clusterSum struct {
	fresh float64 // per second
	open  int
}

// NewTop sums up what nodes answered, by services, clusters or nodes. Rates are of those nodes that
// answered before, too. Counters that went back, because a frontend or a backend left, say nothing
// about the time since.
func NewTop(by string, before, after []*TrafficList) *TopList {
	l := &TopList{Meta: Meta{APIVersion, KindTop}, By: by, Items: []TopRow{}}
	rows := map[string]*TopRow{}
	for _, a := range after {
		last := sameNode(before, a.SeenFrom)
		seconds := 0.0
		if last != nil {
			seconds = a.SeenFrom.Time.Sub(last.SeenFrom.Time).Seconds()
			l.Seconds = max(l.Seconds, seconds)
		}
		for _, s := range a.Items {
			count(rows, by, a.SeenFrom, ratesOf(s, last, seconds))
		}
	}
	for _, r := range rows {
		r.To = shares(r.clusters)
		l.Items = append(l.Items, *r)
	}
	SortTop(l.Items, "new")
	return l
}

func sameNode(all []*TrafficList, v Viewpoint) *TrafficList {
	i := slices.IndexFunc(all, func(l *TrafficList) bool { return l.SeenFrom.Cluster == v.Cluster && l.SeenFrom.Node == v.Node })
	if i < 0 {
		return nil
	}
	return all[i]
}

// rates are a service's on one node. Those that are unknown are nil.
type rates struct {
	ServiceTraffic
	fresh, refused *float64
	clusters       map[string]*float64
}

// ratesOf compares a service with the node's last answer. A service that was not in that had no
// connections yet.
func ratesOf(s ServiceTraffic, last *TrafficList, seconds float64) rates {
	r := rates{ServiceTraffic: s, clusters: map[string]*float64{}}
	if last == nil || seconds <= 0 {
		return r
	}
	var was ServiceTraffic
	if i, had := slices.BinarySearchFunc(last.Items, s.Service, func(x ServiceTraffic, name string) int { return strings.Compare(x.Service, name) }); had {
		was = last.Items[i]
	}
	r.fresh, r.refused = rate(was.Connects, s.Connects, seconds), rate(was.Refused, s.Refused, seconds)
	for _, c := range s.Clusters {
		r.clusters[c.Cluster] = rate(was.cluster(c.Cluster).Connects, c.Connects, seconds)
	}
	return r
}

func rate(before, after uint64, seconds float64) *float64 {
	if after < before {
		return nil
	}
	perSecond := float64(after-before) / seconds
	return &perSecond
}

// count adds a service of one node to the rows that it belongs to.
func count(rows map[string]*TopRow, by string, from Viewpoint, s rates) {
	row := func(name string) *TopRow {
		if rows[name] == nil {
			rows[name] = &TopRow{Name: name, clusters: map[string]*clusterSum{}}
		}
		return rows[name]
	}
	if by == "clusters" {
		for _, c := range s.Clusters {
			r := row(c.Cluster)
			r.Add(c.FlowCounts)
			r.New = addKnown(r.New, s.clusters[c.Cluster])
		}
		return
	}
	name := s.Service
	if by == "nodes" {
		name = from.Cluster + "/" + from.Node
	}
	r := row(name)
	r.Add(s.FlowCounts)
	r.New, r.Refused = addKnown(r.New, s.fresh), addKnown(r.Refused, s.refused)
	for _, c := range s.Clusters {
		if r.clusters[c.Cluster] == nil {
			r.clusters[c.Cluster] = &clusterSum{}
		}
		sum := r.clusters[c.Cluster]
		if sum.open += c.Open; s.clusters[c.Cluster] != nil {
			sum.fresh += *s.clusters[c.Cluster]
		}
	}
}

func shares(of map[string]*clusterSum) (out []TopShare) {
	fresh, open := 0.0, 0
	for _, s := range of {
		fresh, open = fresh+s.fresh, open+s.open
	}
	for name, s := range of {
		share := 0.0
		switch {
		case fresh > 0:
			share = s.fresh / fresh
		case open > 0:
			share = float64(s.open) / float64(open)
		}
		if share > 0 {
			out = append(out, TopShare{name, share})
		}
	}
	slices.SortFunc(out, func(a, b TopShare) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Cluster, b.Cluster))
	})
	return out
}

// TopOrders are what a top list can be sorted by.
var TopOrders = []string{"new", "refused", "open", "sent", "received", "name"}

// SortTop sorts rows by one of TopOrders, the largest first and what is unknown last; rows that are
// alike by their open connections, and then by name.
func SortTop(rows []TopRow, order string) {
	by := map[string]func(a, b TopRow) int{
		"new":      func(a, b TopRow) int { return larger(a.New, b.New) },
		"refused":  func(a, b TopRow) int { return larger(a.Refused, b.Refused) },
		"sent":     func(a, b TopRow) int { return larger(a.Sent, b.Sent) },
		"received": func(a, b TopRow) int { return larger(a.Received, b.Received) },
		"name":     func(a, b TopRow) int { return strings.Compare(a.Name, b.Name) },
		"open":     func(TopRow, TopRow) int { return 0 },
	}[order]
	slices.SortFunc(rows, func(a, b TopRow) int {
		return cmp.Or(by(a, b), cmp.Compare(b.Open, a.Open), strings.Compare(a.Name, b.Name))
	})
}

func larger[N uint64 | float64](a, b *N) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*b, *a)
}
