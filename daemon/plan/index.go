package plan

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan/mesh"
	"strait.io/strait/datapath"
)

// source is the endpoints of one record, with what is known about the machines that they are on.
// Immutable.
type source struct {
	origin    clustermesh.Origin
	endpoints []clustermesh.Endpoint
	dead      bool
	facts     facts
	// others are the facts of other nodes that the endpoints name; nil if they name none.
	others map[clustermesh.NodeName]facts
	// strays are the endpoints with addresses that are not their cluster's.
	strays map[netip.Addr]mesh.Stray
}

// facts are what is known about an endpoint's node, besides whether it is dead.
type facts struct {
	contact  clustermesh.Contact
	locality clustermesh.Locality
	// inside is where pods that use the node's network are reached through the tunnel; invalid if
	// this node has no tunnel to it.
	inside netip.Addr
	drains drains
	// tunnel is what is wrong with the tunnel that packets for it enter.
	tunnel Fault
}

// row is a run of endpoints in a record that belong to one service.
type row struct {
	from        *source
	first, last int32 // last is exclusive
}

func (r row) endpoints() []clustermesh.Endpoint { return r.from.endpoints[r.first:r.last] }

// index finds the endpoints of a service, for one node.
type index struct {
	sources clustermesh.ByOrigin[*source]
	rows    []*rows // sorted by service
	// What the sources were made with.
	placed *mesh.Mesh
	faults map[clustermesh.Origin]Fault
	dead   map[clustermesh.Origin]bool
}

// rows are the endpoints of one service, sorted by origin. Immutable.
type rows struct {
	service clustermesh.ServiceName
	list    []row
}

func (r *rows) compare(s clustermesh.ServiceName) int { return r.service.Compare(s) }

// of returns the endpoints of a service.
func (x *index) of(s clustermesh.ServiceName) []row {
	if i, is := slices.BinarySearchFunc(x.rows, s, (*rows).compare); is {
		return x.rows[i].list
	}
	return nil
}

// indexInputs is what an index is made from: the Inputs, which nodes' machines are dead, the mesh,
// and of which origins something else has changed since the last time.
type indexInputs struct {
	Inputs
	dead map[clustermesh.Origin]bool
	mesh *mesh.Mesh
	news map[clustermesh.Origin]bool
}

// touch says what happened to a service's endpoints; 0 means nothing.
type touch uint8

const (
	// moved: the endpoints are the same, in a new record.
	moved touch = iota + 1
	// changed: the endpoints, or what is known about their machines, differ.
	changed
)

// update replaces the indexed records by those of a state, and returns the services whose endpoints
// it touched.
func (x *index) update(in indexInputs) map[clustermesh.ServiceName]touch {
	next := x.sources.Draft()
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
	for o := range x.concerned(in) {
		old := x.sources.Get(o)
		_, held := in.State.Records.Lookup(o)
		switch {
		case held:
			if src := x.sourceOf(in, o, old); src != old {
				replace(old, src)
				next.Set(o, src)
			}
		case old != nil:
			replace(old, nil)
			next.Delete(o)
		}
	}
	x.sources, x.placed, x.faults, x.dead = next.Share(), in.mesh, in.Faults, in.dead
	x.merge(touched, gone, added)
	return touched
}

// concerned returns the origins whose sources may differ now.
func (x *index) concerned(in indexInputs) map[clustermesh.Origin]bool {
	out := maps.Clone(in.news)
	if x.placed != in.mesh || !maps.Equal(x.faults, in.Faults) {
		for o := range in.State.Records.All() {
			out[o] = true
		}
		return out
	}
	clusters := map[clustermesh.ClusterName]bool{}
	for o := range in.news {
		clusters[o.Cluster] = true
	}
	for c := range clusters {
		for o, src := range x.sources.Of(c) {
			if src.others != nil {
				out[o] = true
			}
		}
	}
	return out
}

// merge replaces the rows of services that were touched. The old list stays as it is.
func (x *index) merge(touched map[clustermesh.ServiceName]touch, gone map[*source]bool, added map[clustermesh.ServiceName][]row) {
	if len(touched) == 0 {
		return
	}
	out := make([]*rows, 0, len(x.rows)+len(touched))
	left := x.rows
	for _, name := range slices.SortedFunc(maps.Keys(touched), clustermesh.ServiceName.Compare) {
		i, is := slices.BinarySearchFunc(left, name, (*rows).compare)
		out = append(out, left[:i]...)
		var old []row
		if left = left[i:]; is {
			old, left = left[0].list, left[1:]
		}
		if list := replaced(old, gone, added[name]); len(list) > 0 {
			out = append(out, &rows{name, list})
		}
	}
	x.rows = append(out, left...)
}

// replaced adds rows to those of a service, and removes those of sources that are gone.
func replaced(old []row, gone map[*source]bool, added []row) []row {
	out := make([]row, 0, len(old)+len(added))
	for _, r := range old {
		if !gone[r.from] {
			out = append(out, r)
		}
	}
	out = append(out, added...)
	slices.SortStableFunc(out, func(a, b row) int { return a.from.origin.Compare(b.from.origin) })
	return out
}

// gone returns the addresses of the pods on dead machines, sorted.
func (x *index) gone() (out []netip.Addr) {
	for o := range x.dead {
		if src := x.sources.Get(o); src != nil {
			for i := range src.endpoints {
				out = append(out, member{&src.endpoints[i], src}.addr())
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// sourceOf makes a source from a record. It returns the old one if nothing in it changed. Records
// are immutable, so a list of endpoints at the same address in memory is the same list.
func (x *index) sourceOf(in indexInputs, o clustermesh.Origin, old *source) *source {
	endpoints, dead, facts := in.State.Records.Get(o).Content.Endpoints, in.dead[o], in.factsOf(o)
	same := old != nil && datapath.SameList(old.endpoints, endpoints)
	if same && old.others == nil && x.placed == in.mesh && old.dead == dead && old.facts == facts {
		return old
	}
	src := &source{origin: o, endpoints: endpoints, dead: dead, facts: facts}
	if !same || old.others != nil {
		src.others = in.strangers(src)
	}
	if same && x.placed == in.mesh && old.facts.inside == src.facts.inside && maps.Equal(old.others, src.others) {
		src.strays = old.strays
	} else {
		src.strays = in.strays(src)
	}
	if same && maps.Equal(old.strays, src.strays) && old.dead == src.dead && old.facts == src.facts && maps.Equal(old.others, src.others) {
		return old
	}
	return src
}

func (in indexInputs) factsOf(o clustermesh.Origin) facts {
	f := facts{contact: in.State.Contacts.Get(o), drains: drainsOf(in.State, o)}
	if len(in.Faults) > 0 {
		f.tunnel = in.Faults[cmp.Or(in.mesh.Hop(o), o)]
	}
	if o == in.Self.Origin() || o.Node == "" {
		f.contact = clustermesh.Alive
	}
	if n := in.State.Records.Get(o).Content.Node; n != nil {
		f.locality = n.Locality
		if in.Config.Mesh && o.Cluster != in.Self.Cluster {
			f.inside = n.Inside
		}
	}
	return f
}

// strangers returns the facts of nodes other than the record's own.
func (in indexInputs) strangers(src *source) (out map[clustermesh.NodeName]facts) {
	for i := range src.endpoints {
		node := src.endpoints[i].Node
		if _, known := out[node]; known || node == src.origin.Node {
			continue
		}
		if out == nil {
			out = map[clustermesh.NodeName]facts{}
		}
		out[node] = in.factsOf(clustermesh.Origin{Cluster: src.origin.Cluster, Node: node})
	}
	return out
}

func (src *source) of(node clustermesh.NodeName) facts {
	if node == src.origin.Node {
		return src.facts
	}
	return src.others[node]
}

// runs returns the rows of a source by service; nil for nil.
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

// compare says what happened to the rows that a service had in a record.
func compare(was, is []row) touch {
	if len(was) != len(is) {
		return changed
	}
	for i := range was {
		a, b := was[i].from, is[i].from
		if a.dead != b.dead || a.facts != b.facts || !maps.Equal(a.others, b.others) || !maps.Equal(a.strays, b.strays) ||
			!slices.EqualFunc(was[i].endpoints(), is[i].endpoints(), clustermesh.Endpoint.Equal) {
			return changed
		}
	}
	return moved
}
