package node

import (
	"maps"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/observe"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/clustermesh/topology"
)

const (
	// maxGuests bounds how many nodes are served that keep a stream without need.
	maxGuests = 256
	// reportPause is how long a report is the last one at least: a node can change its own as often as
	// it likes, and each would be passed on to many.
	reportPause = 100 * time.Millisecond
)

// ways is what the topology was given last, besides the members, and what that made of it.
type ways struct {
	guests   map[clustermesh.Origin]int // streams that peers have opened, while they are trusted
	changed  bool                       // guests
	doubtful map[clustermesh.Origin]bool
	view     topology.View
	basis    observe.Basis
	own      clustermesh.RelayUse // this node's
	synced   bool
	// apart is true while there are members to which no stream is wanted.
	apart bool
	links observe.Links
	// claims are the records whose claims Contacts.Claimed was given.
	claims clustermesh.ByOrigin[clustermesh.Record]
	said   observe.Report // to other nodes of this cluster
	saidAt time.Time
	// arrivals are those of Ways.
	arrivals map[clustermesh.Origin]Arrival
}

// regroup keeps streams to the neighbours among the members of now.
func (n *Node) regroup() {
	w := &n.ways
	v := topology.View{
		Members: n.contacts.Members(), Known: n.contacts.Known(), Older: n.contacts.Meshed(),
		Use: n.contacts.Use(), Doubtful: w.doubtful,
	}
	if w.synced = n.replica.Synced(); w.synced { // until then, records that are missing here mean nothing
		v.Unknown = n.contacts.Unknown()
	}
	if w.basis, w.own = n.contacts.Basis(), n.relayUse(); w.own != clustermesh.RelayAuto {
		v.Use = maps.Clone(v.Use)
		if v.Use == nil {
			v.Use = map[clustermesh.Origin]clustermesh.RelayUse{}
		}
		v.Use[n.cfg.Self] = w.own
	}
	v.Guests = slices.SortedFunc(maps.Keys(w.guests), clustermesh.Origin.Compare)
	v.Guests = v.Guests[:min(len(v.Guests), maxGuests)]
	w.changed, w.view = false, v
	n.apply(n.replica.SetMembers(v))
	w.apart = len(n.replica.Neighbours()) < len(v.Members)
	n.touch()
	n.updateClaims()
}

// review regroups if anything but the members has changed that matters to the topology.
func (n *Node) review() {
	w := &n.ways
	var doubtful map[clustermesh.Origin]bool
	if w.apart {
		doubtful = n.contacts.Doubtful(n.now)
	}
	if w.changed || w.basis != n.contacts.Basis() || w.own != n.relayUse() || w.synced != n.replica.Synced() || !maps.Equal(doubtful, w.doubtful) {
		w.doubtful = doubtful
		n.regroup()
	}
}

// relayUse is what this node says about being a relay.
func (n *Node) relayUse() clustermesh.RelayUse {
	if n.own == nil || n.own.Node == nil {
		return clustermesh.RelayAuto
	}
	return n.own.Node.Relay
}

// guest notes that a trusted peer has opened a stream (+1), or that it ended (-1). Whoever keeps one
// is served.
func (n *Node) guest(o clustermesh.Origin, delta int) {
	if n.ways.guests == nil {
		n.ways.guests = map[clustermesh.Origin]int{}
	}
	before := n.ways.guests[o]
	if n.ways.guests[o] = before + delta; before+delta <= 0 {
		delete(n.ways.guests, o)
	}
	n.ways.changed = n.ways.changed || (before > 0) != (before+delta > 0)
}

// hearLinks brings up to date whom streams reach, here and by what relays report, and reports that to
// the neighbours in this node's cluster.
func (n *Node) hearLinks() {
	l := &n.ways.links
	if !n.ways.apart {
		if !n.ways.said.Equal(observe.Report{}) { // with a stream to each member, reports are not needed any more
			n.ways.links, n.ways.said = observe.Links{}, observe.Report{}
			n.contacts.Believe(observe.Sight{})
			n.touch()
		}
		return
	}
	if n.now.Sub(n.ways.saidAt) < reportPause || !l.Update(n.contacts.Sees(n.now), n.contacts.HasStream) {
		return
	}
	n.ways.saidAt = n.now
	if n.contacts.Believe(l.All()) {
		n.touch()
	}
	if own := l.Own(); !own.Equal(n.ways.said) {
		n.ways.said = own
		for _, p := range n.replica.Neighbours() {
			n.sayLinks(p)
		}
	}
}

// sayLinks reports that to a neighbour in this node's cluster.
func (n *Node) sayLinks(to clustermesh.Origin) {
	if said := n.ways.said; to.Cluster == n.cfg.Self.Cluster && n.ways.apart {
		m := &replica.Links{Heard: said.Own.Heard, Via: said.Via.Heard, Silent: said.Own.Silent, SilentVia: said.Via.Silent}
		n.actions.Send = append(n.actions.Send, replica.Envelope{To: to, Message: m})
	}
}

// receiveLinks takes the report of a trusted peer.
func (n *Node) receiveLinks(from clustermesh.Origin, m *replica.Links) {
	if from.Cluster != n.cfg.Self.Cluster {
		return
	}
	n.ways.links.Report(from, observe.Report{
		Own: observe.Sight{Heard: m.Heard, Silent: m.Silent}, Via: observe.Sight{Heard: m.Via, Silent: m.SilentVia},
	})
	n.actions.Beat = true
}

// hearClaims has nodes asked that their own clusters take for dead. The claims of this node's cluster
// are about nodes that it hears itself, or not.
func (n *Node) hearClaims() {
	before, now := n.ways.claims, n.replica.Records()
	n.ways.claims = now
	touched := map[clustermesh.ClusterName]bool{}
	for o := range now.Since(before) {
		differs := !slices.Equal(before.Get(o).Content.Silent, now.Get(o).Content.Silent)
		if o.Cluster != n.cfg.Self.Cluster && differs {
			touched[o.Cluster] = true
		}
	}
	for c := range touched {
		if n.contacts.Claimed(c, clustermesh.State{Records: now}.DeadOf(c), n.now) {
			n.touch()
		}
	}
}

// Arrival is when a version of a record came, and from which peer; from this node itself if it wrote it.
type Arrival struct {
	From  clustermesh.Origin
	At    time.Time
	Stamp clustermesh.Stamp
}

// arrived notes what came from a peer, or what this node wrote.
func (n *Node) arrived(changed []clustermesh.Origin, from clustermesh.Origin) {
	for _, o := range changed {
		if r, held := n.replica.Record(o); held {
			n.ways.arrivals[o] = Arrival{from, n.now, r.Stamp}
		} else {
			delete(n.ways.arrivals, o)
		}
	}
}

// Ways is how records travel, for people.
type Ways struct {
	// Arrivals are of the records that came, or that this node wrote, in this life of the daemon: the last
	// one of each, if that is the version that is held.
	Arrivals map[clustermesh.Origin]Arrival
	// Ahead is by how much the clocks of other clusters' nodes are ahead of this machine's, where that is
	// known.
	Ahead map[clustermesh.Origin]time.Duration
	// Relays are those of all clusters; empty if each daemon has a stream to each other one.
	Relays map[clustermesh.Origin]bool
	// Streams are the daemons to which there is a stream on which both write.
	Streams map[clustermesh.Origin]bool
	// Linked are the other clusters that are heard: on a stream of this daemon (true), or as relays of
	// its cluster report (false).
	Linked map[clustermesh.ClusterName]bool
}

// Ways returns how records travel now.
func (n *Node) Ways(now time.Time) Ways {
	out := Ways{
		Arrivals: maps.Clone(n.ways.arrivals), Ahead: map[clustermesh.Origin]time.Duration{}, Relays: map[clustermesh.Origin]bool{},
		Streams: map[clustermesh.Origin]bool{}, Linked: map[clustermesh.ClusterName]bool{},
	}
	maps.DeleteFunc(out.Arrivals, func(o clustermesh.Origin, a Arrival) bool {
		held := n.replica.Peek(o)
		return held == nil || held.Stamp != a.Stamp
	})
	for o := range n.RTTs() {
		if by, known := n.Ahead(o); known {
			out.Ahead[o] = by
		}
	}
	for _, o := range n.replica.Relays(n.ways.view) {
		out.Relays[o] = true
	}
	for _, o := range n.replica.Neighbours() {
		if n.contacts.HasStream(o) {
			out.Streams[o] = true
		}
	}
	for _, c := range n.ways.links.All().Heard {
		out.Linked[c] = false
	}
	for _, c := range n.contacts.Sees(now).Heard {
		out.Linked[c] = true
	}
	return out
}
