package topology

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"strait.io/strait/clustermesh"
)

const (
	// perRelay is for how many nodes of a cluster there is one relay, and leastRelays how many
	// there are at least. A cluster of fewer nodes is all relays.
	perRelay, leastRelays = 20, 3
	// copies is how many relays pass what a cluster's node wrote on to another cluster, each to
	// another relay of it, and one more offers it: so one relay of each of the two can have failed.
	copies = 2
)

// Relays is a topology in which a few nodes of each cluster pass on what others write. A node keeps
// streams to two of them, its homes; the relays of a cluster to each other, and to at most one of
// each other cluster, or two if they are alone in theirs. Older daemons have a stream to everybody.
// Packets travel as in FullMesh.
type Relays struct{ FullMesh }

var _ Topology = Relays{}

// Roles implements Topology.
func (Relays) Roles(self clustermesh.Origin, members []clustermesh.Origin) Roles {
	return Roles{Relay: relayWaysOf(View{Self: self, Members: members}).relay}
}

// Ways implements Topology. A daemon with doubtful neighbours keeps its streams to these, and besides
// the ones that it would have without them.
func (Relays) Ways(v View) Ways {
	w := relayWaysOf(v)
	if slices.ContainsFunc(w.neighbours, func(o clustermesh.Origin) bool { return v.Doubtful[o] }) {
		v.Members = slices.DeleteFunc(slices.Clone(v.Members), func(o clustermesh.Origin) bool { return v.Doubtful[o] })
		return bothWays(w, relayWaysOf(v))
	}
	return w
}

// Relays implements Topology.
func (Relays) Relays(v View) (out []clustermesh.Origin) {
	by := v.others()
	by[v.Self.Cluster] = v.own()
	for _, c := range slices.Sorted(maps.Keys(by)) {
		for _, r := range v.relaysOf(by[c]) {
			out = append(out, r.origin)
		}
	}
	return out
}

// doubly are two ways at once: with the doubtful members, and without.
type doubly struct {
	all, sure  relayWays
	neighbours []clustermesh.Origin
}

func bothWays(all, sure relayWays) doubly {
	return doubly{all, sure, distinct(all.neighbours, sure.neighbours)}
}

// Neighbours implements Ways.
func (d doubly) Neighbours() []clustermesh.Origin { return d.neighbours }

// Spread implements Ways.
func (d doubly) Spread(news News, neighbours []clustermesh.Origin) Spread {
	guests := slices.DeleteFunc(slices.Clone(neighbours), func(p clustermesh.Origin) bool { return has(d.neighbours, p) })
	a, b := d.all.Spread(news, guests), d.sure.Spread(news, guests)
	to := Spread{Records: distinct(a.Records, b.Records), Offers: distinct(a.Offers, b.Offers), Hints: distinct(a.Hints, b.Hints)}
	to.Offers = slices.DeleteFunc(to.Offers, func(p clustermesh.Origin) bool { return has(to.Records, p) })
	to.Hints = slices.DeleteFunc(to.Hints, func(p clustermesh.Origin) bool { return has(to.Records, p) || has(to.Offers, p) })
	return to
}

// has reports whether a sorted list has an origin.
func has(list []clustermesh.Origin, o clustermesh.Origin) bool {
	_, is := slices.BinarySearchFunc(list, o, clustermesh.Origin.Compare)
	return is
}

// distinct returns what is in either list, sorted.
func distinct(a, b []clustermesh.Origin) []clustermesh.Origin {
	out := slices.Concat(a, b)
	slices.SortFunc(out, clustermesh.Origin.Compare)
	return slices.Compact(out)
}

// relayWays are those of one daemon.
type relayWays struct {
	self clustermesh.Origin
	// homes are those of a node that is no relay, the first one first.
	homes []clustermesh.Origin
	// Of a relay: whether it is one, the others of its cluster, and those of others that it is
	// linked to.
	relay bool
	mates []clustermesh.Origin
	links map[clustermesh.ClusterName][]link
	// first and second are the nodes whose first and second home it is.
	first, second []clustermesh.Origin
	// older are daemons that have a stream to everybody.
	older []clustermesh.Origin
	// neighbours are all of these, sorted.
	neighbours []clustermesh.Origin
}

// link is a stream between relays of two clusters: the at-th of so many between the two, on which so many
// copies of what a node wrote travel.
type link struct {
	to             clustermesh.Origin
	at, of, copies int
}

// relayWaysOf returns those of a node among the members of a view.
func relayWaysOf(v View) relayWays {
	w := relayWaysIn(v)
	out := slices.Concat(w.homes, w.mates, w.first, w.second)
	for _, links := range w.links {
		for _, l := range links {
			out = append(out, l.to)
		}
	}
	w.neighbours = distinct(out, w.older)
	return w
}

func relayWaysIn(v View) relayWays {
	w := relayWays{self: v.Self, older: slices.SortedFunc(maps.Keys(v.Older), clustermesh.Origin.Compare)}
	w.older = slices.DeleteFunc(w.older, func(o clustermesh.Origin) bool { return o == v.Self })
	own := v.own()
	relays := v.relaysOf(own)
	at := slices.IndexFunc(relays, func(r ranked) bool { return r.origin == v.Self })
	if w.relay = at >= 0; !w.relay {
		w.homes = homes(own, relays)[v.Self]
		return w
	}
	for i, r := range relays {
		if i != at {
			w.mates = append(w.mates, r.origin)
		}
	}
	for o, h := range homes(own, relays) {
		if h[0] == v.Self {
			w.first = append(w.first, o)
		} else if len(h) > 1 && h[1] == v.Self {
			w.second = append(w.second, o)
		}
	}
	slices.SortFunc(w.first, clustermesh.Origin.Compare)
	slices.SortFunc(w.second, clustermesh.Origin.Compare)
	w.links = linksOf(v, at, len(relays))
	return w
}

// linksOf returns those of the at-th of the relays of the view's own cluster. Of the relays of two
// clusters, as many have a stream as the smaller one has, each to another one. A relay that is alone
// has two, so that one of the other cluster cannot keep it from all others.
func linksOf(v View, at, relays int) map[clustermesh.ClusterName][]link {
	by := v.others()
	out := make(map[clustermesh.ClusterName][]link, len(by))
	for c, all := range by {
		theirs := v.relaysOf(all)
		r := max(min(relays, len(theirs)), min(copies, max(relays, len(theirs))))
		for i := at; i < r; i += relays {
			to := int((hashOf(string(v.Self.Cluster)) + hashOf(string(c)) + uint64(r-i)) % uint64(r))
			l := link{to: theirs[to%len(theirs)].origin, at: i, of: r, copies: min(copies, len(theirs))}
			out[c] = append(out[c], l)
		}
	}
	return out
}

// Neighbours implements Ways.
func (w relayWays) Neighbours() []clustermesh.Origin { return w.neighbours }

// Spread implements Ways. Neighbours that are none by these ways are served like nodes whose first
// home this is.
func (w relayWays) Spread(news News, neighbours []clustermesh.Origin) (to Spread) {
	switch {
	case w.relay:
		to.Records = append(to.Records, w.first...)
		to.Hints = append(to.Hints, w.second...)
		if !slices.Contains(w.mates, news.From) {
			to.Records = append(to.Records, w.mates...)
		}
		if news.Writer.Cluster == w.self.Cluster {
			w.pass(&to, news.Writer)
		}
	case news.From == (clustermesh.Origin{}):
		to.Records = append(to.Records, w.homes...)
	}
	w.serve(&to, news, neighbours)
	hasIt := func(p clustermesh.Origin) bool { return p == news.From || p == news.Writer }
	to.Records, to.Offers = slices.DeleteFunc(to.Records, hasIt), slices.DeleteFunc(to.Offers, hasIt)
	to.Hints = slices.DeleteFunc(to.Hints, hasIt)
	if news.Repaired {
		to.Records, to.Offers = nil, append(to.Records, to.Offers...)
	}
	return to
}

// serve adds the guests, and the older daemons: these from whoever wrote it and from the first relay
// of its cluster.
func (w relayWays) serve(to *Spread, news News, neighbours []clustermesh.Origin) {
	for _, p := range neighbours {
		if !has(w.neighbours, p) {
			to.Records = append(to.Records, p)
		}
	}
	switch {
	case news.From == (clustermesh.Origin{}):
		to.Records = append(to.Records, w.older...)
	case w.relay:
		to.Hints = append(to.Hints, w.older...)
	}
}

// pass adds the relays of other clusters to which this one passes on what a node of its cluster
// wrote.
func (w relayWays) pass(to *Spread, writer clustermesh.Origin) {
	from := hashOf(string(writer.Cluster), string(writer.Node))
	for _, c := range slices.Sorted(maps.Keys(w.links)) {
		for _, l := range w.links[c] {
			// How far it is from the first that passes it on, around the links between the two clusters.
			switch far := (l.at + l.of - int((from+hashOf(string(c)))%uint64(l.of))) % l.of; {
			case far < l.copies:
				to.Records = append(to.Records, l.to)
			case far == l.copies:
				to.Hints = append(to.Hints, l.to)
			}
		}
	}
}

// ranked is a node with its place among those of its cluster.
type ranked struct {
	origin clustermesh.Origin
	hash   uint64
}

func rank(o clustermesh.Origin) ranked { return ranked{o, hashOf(string(o.Cluster), string(o.Node))} }

func (r ranked) compare(other ranked) int {
	return cmp.Or(cmp.Compare(r.hash, other.hash), r.origin.Compare(other.origin))
}

// own returns the nodes of the view's own cluster that know relays. Most daemons need no others.
func (v View) own() []ranked {
	out := []ranked{rank(v.Self)}
	for _, o := range v.Members {
		if o.Cluster == v.Self.Cluster && o != v.Self && !v.Older[o] {
			out = append(out, rank(o))
		}
	}
	return out
}

// others returns the nodes of other clusters that know relays.
func (v View) others() map[clustermesh.ClusterName][]ranked {
	out := map[clustermesh.ClusterName][]ranked{}
	for _, o := range v.Members {
		if o.Cluster != v.Self.Cluster && !v.Older[o] {
			out[o.Cluster] = append(out[o.Cluster], rank(o))
		}
	}
	return out
}

// candidates returns which nodes of a cluster can be relays: those that alone should be, or all that may
// be, or all that are known, or all.
func (v View) candidates(nodes []ranked) []ranked {
	if len(v.Use)+len(v.Unknown) == 0 {
		return nodes
	}
	var only, may, known []ranked
	others := false
	for _, n := range nodes {
		if v.Unknown[n.origin] {
			continue
		}
		known, others = append(known, n), others || n.origin != v.Self
		switch v.Use[n.origin] {
		case clustermesh.RelayOnly:
			only = append(only, n)
		case clustermesh.RelayAuto:
			may = append(may, n)
		}
	}
	for _, some := range [][]ranked{only, may, known} {
		if others && len(some) > 0 {
			return some
		}
	}
	return nodes
}

// relaysOf returns the relays among the nodes of a cluster: those of the lowest hashes, so that who
// joins or leaves changes one of them at most, but for their number.
func (v View) relaysOf(nodes []ranked) []ranked {
	can := v.candidates(nodes)
	n := min(max(leastRelays, (len(nodes)+perRelay-1)/perRelay), len(can))
	out := make([]ranked, 0, n+1)
	for _, x := range can {
		if len(out) == n && out[n-1].compare(x) < 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(out, x, ranked.compare)
		out = slices.Insert(out, i, x)[:min(n, len(out)+1)]
	}
	return out
}

// homes returns the homes of the nodes that are no relays. Each takes the relays that a hash of both
// puts first, unless they have their share already.
func homes(nodes, relays []ranked) map[clustermesh.Origin][]clustermesh.Origin {
	is := map[clustermesh.Origin]bool{}
	for _, r := range relays {
		is[r.origin] = true
	}
	rest := slices.DeleteFunc(slices.Clone(nodes), func(n ranked) bool { return is[n.origin] })
	slices.SortFunc(rest, ranked.compare)
	out := make(map[clustermesh.Origin][]clustermesh.Origin, len(rest))
	share := (len(rest)*11 + len(relays)*10 - 1) / (len(relays) * 10) // and a tenth
	for range min(2, len(relays)) {
		load := make([]int, len(relays))
		for _, n := range rest {
			best, least := -1, uint64(0)
			for i, r := range relays {
				h := hashOfBoth(n.hash, r.hash)
				if load[i] < share && !slices.Contains(out[n.origin], r.origin) && (best < 0 || h < least) {
					best, least = i, h
				}
			}
			if best < 0 { // only the one that it has already has room
				best = slices.IndexFunc(relays, func(r ranked) bool { return !slices.Contains(out[n.origin], r.origin) })
			}
			load[best]++
			out[n.origin] = append(out[n.origin], relays[best].origin)
		}
	}
	return out
}

// hashOf returns a hash of names, which must be the same in all daemons and versions.
func hashOf(names ...string) uint64 {
	var d xxhash.Digest
	d.Reset()
	for _, name := range names { // no error: a Digest takes everything
		_, _ = d.WriteString(name)
		_, _ = d.WriteString("\x00")
	}
	return d.Sum64()
}

// hashOfBoth returns a hash of two hashes.
func hashOfBoth(a, b uint64) uint64 {
	var both [16]byte
	binary.LittleEndian.PutUint64(both[:8], a)
	binary.LittleEndian.PutUint64(both[8:], b)
	return xxhash.Sum64(both[:])
}
