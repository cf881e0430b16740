package plan

import (
	"maps"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
)

// source is one record as far as endpoints go, with what is known of the machines that they are on. Immutable.
type source struct {
	origin    clustermesh.Origin
	endpoints []clustermesh.Endpoint
	dead      bool
	facts     facts
	// others are the facts of other nodes that the endpoints name; nil if they name none.
	others map[clustermesh.NodeName]facts
}

// facts are what is known of an endpoint's node besides its death.
type facts struct {
	contact  clustermesh.Contact
	locality clustermesh.Locality
}

// row is a run of a record's endpoints that are of one service.
type row struct {
	from        *source
	first, last int32 // the last one is not in it
}

func (r row) endpoints() []clustermesh.Endpoint { return r.from.endpoints[r.first:r.last] }

// index finds the endpoints of a service.
type index struct {
	sources map[clustermesh.Origin]*source
	rows    map[clustermesh.ServiceName][]row // in the order of origins; a list that was given away is never changed
}

// touch says what became of a service's endpoints; 0 is nothing.
type touch uint8

const (
	// moved: they are as they were, in a new record.
	moved touch = iota + 1
	// changed: they, or what is known of their machines, are not as they were.
	changed
)

// update takes the records of a state in, and returns the services whose endpoints it touched.
func (x *index) update(s clustermesh.State, self Self) map[clustermesh.ServiceName]touch {
	next := make(map[clustermesh.Origin]*source, len(s.Records))
	gone := map[*source]bool{}
	touched := map[clustermesh.ServiceName]touch{}
	added := map[clustermesh.ServiceName][]row{}
	replace := func(old, src *source) {
		gone[old] = true
		before, after := old.runs(), src.runs()
		for name, was := range before {
			touched[name] = max(touched[name], compare(was, after[name]))
		}
		for name, rows := range after {
			if before[name] == nil {
				touched[name] = changed
			}
			added[name] = append(added[name], rows...)
		}
	}
	claimed := claimed(s)
	for _, o := range s.Origins() {
		old := x.sources[o]
		next[o] = sourceOf(s, self, o, claimed[o] && s.Dead(o), old)
		if next[o] != old {
			replace(old, next[o])
		}
	}
	for o, old := range x.sources {
		if next[o] == nil {
			replace(old, nil)
		}
	}
	x.sources = next
	if x.rows == nil {
		x.rows = make(map[clustermesh.ServiceName][]row, len(touched))
	}
	for name := range touched {
		x.replace(name, gone, added[name])
	}
	return touched
}

// replace puts rows of a service in the place of those of sources that are gone.
func (x *index) replace(name clustermesh.ServiceName, gone map[*source]bool, rows []row) {
	out := make([]row, 0, len(x.rows[name])+len(rows))
	for _, r := range x.rows[name] {
		if !gone[r.from] {
			out = append(out, r)
		}
	}
	if out = append(out, rows...); len(out) == 0 {
		delete(x.rows, name)
		return
	}
	slices.SortStableFunc(out, func(a, b row) int { return a.from.origin.Compare(b.from.origin) })
	x.rows[name] = out
}

// dead reports whether a node was judged dead at the last update.
func (x *index) dead(o clustermesh.Origin) bool {
	src := x.sources[o]
	return src != nil && src.dead
}

// gone returns the addresses of the pods on dead machines, sorted.
func (x *index) gone() (out []netip.Addr) {
	for _, src := range x.sources {
		if src.dead {
			for _, e := range src.endpoints {
				out = append(out, e.Addr)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// sourceOf makes a source of a record; it is the old one if that says the same. Records are immutable, so that
// endpoints which lie where they lay are those that they were.
func sourceOf(s clustermesh.State, self Self, o clustermesh.Origin, dead bool, old *source) *source {
	src := &source{origin: o, endpoints: s.Records[o].Content.Endpoints, dead: dead, facts: factsOf(s, self, o)}
	same := old != nil && sameList(old.endpoints, src.endpoints)
	if !same || old.others != nil {
		src.others = src.strangers(s, self)
	}
	if same && old.dead == src.dead && old.facts == src.facts && maps.Equal(old.others, src.others) {
		return old
	}
	return src
}

// claimed are the nodes that somebody calls silent: no other can be dead.
func claimed(s clustermesh.State) map[clustermesh.Origin]bool {
	out := map[clustermesh.Origin]bool{}
	for _, r := range s.Records {
		for _, c := range r.Content.Silent {
			out[c.Origin] = c.Origin.Node != ""
		}
	}
	return out
}

func factsOf(s clustermesh.State, self Self, o clustermesh.Origin) facts {
	f := facts{contact: s.Contacts[o]}
	if o == self.Origin() || o.Node == "" {
		f.contact = clustermesh.Alive
	}
	if n := s.Records[o].Content.Node; n != nil {
		f.locality = n.Locality
	}
	return f
}

// strangers gathers the facts of nodes that are not the record's own.
func (src *source) strangers(s clustermesh.State, self Self) (out map[clustermesh.NodeName]facts) {
	for i := range src.endpoints {
		node := src.endpoints[i].Node
		if _, known := out[node]; known || node == src.origin.Node {
			continue
		}
		if out == nil {
			out = map[clustermesh.NodeName]facts{}
		}
		out[node] = factsOf(s, self, clustermesh.Origin{Cluster: src.origin.Cluster, Node: node})
	}
	return out
}

func (src *source) of(node clustermesh.NodeName) facts {
	if node == src.origin.Node {
		return src.facts
	}
	return src.others[node]
}

// runs are the rows of a source; none of nil.
func (src *source) runs() map[clustermesh.ServiceName][]row {
	if src == nil {
		return nil
	}
	out := map[clustermesh.ServiceName][]row{}
	for first := 0; first < len(src.endpoints); {
		name, last := src.endpoints[first].Service, first+1
		for last < len(src.endpoints) && src.endpoints[last].Service == name {
			last++
		}
		out[name] = append(out[name], row{src, int32(first), int32(last)})
		first = last
	}
	return out
}

// compare says what became of the rows that a service had in a record.
func compare(was, is []row) touch {
	if len(was) != len(is) {
		return changed
	}
	for i := range was {
		a, b := was[i].from, is[i].from
		if a.dead != b.dead || a.facts != b.facts || !maps.Equal(a.others, b.others) ||
			!slices.EqualFunc(was[i].endpoints(), is[i].endpoints(), clustermesh.Endpoint.Equal) {
			return changed
		}
	}
	return moved
}

// sameList reports that two lists of immutable things are one.
func sameList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
