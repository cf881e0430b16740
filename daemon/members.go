package daemon

import (
	"maps"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/daemon/api"
)

// MemberList lists clusters and nodes with their keys and trust; nil before the first moment.
func (d *Daemon) MemberList() *api.MemberList {
	m := d.now()
	if m == nil {
		return nil
	}
	v := d.viewer(m)
	v.heard = d.gossip.Heard()
	return api.NewMemberList(d.viewpoint(m), v.memberList(d.gossip.Trust(), d.gossip.Ways(), d.gossip.Distances(), d.gossip.RTTs()))
}

// memberList returns each cluster before its nodes, and clusters that are not trusted last.
func (v viewer) memberList(t gossip.Trust, w gossip.Ways, far map[clustermesh.ClusterName]uint32, rtts map[clustermesh.Origin]time.Duration) (out []api.Member) {
	nodes := map[string][]api.Member{}
	for _, n := range v.nodes() {
		o := clustermesh.Origin{Cluster: clustermesh.ClusterName(n.Cluster), Node: clustermesh.NodeName(n.Name)}
		m := api.Member{Cluster: n.Cluster, Node: n.Name, State: n.Contact, Heard: n.Heard, GossipKeys: v.state.Records.Get(o).Content.GossipKeys}
		v.travelled(&m, w, o)
		if m.Relay = w.Relays[o]; w.Streams[o] {
			m.Link = api.LinkStream
		}
		m.RTT, m.Signed = milliseconds(rtts[o]), t.Sealed[o]
		if s, known := t.Statements[o]; known {
			m.Keys, m.Ends, m.Root = []string{s.Key.Fingerprint()}, time.Unix(s.NotAfter, 0), s.Root.Fingerprint()
		}
		if node := v.state.Records.Get(o).Content.Node; node != nil && len(m.Keys) > 0 {
			m.HasRoot = !node.Follower
		}
		nodes[n.Cluster] = append(nodes[n.Cluster], m)
	}
	shown := map[clustermesh.ClusterName]bool{}
	for _, c := range v.clusters() {
		name := clustermesh.ClusterName(c.Name)
		shown[name] = true
		m := clusterMember(t.Pins, name, string(c.State))
		m.Link = linkOf(w, name)
		v.travelled(&m, w, clustermesh.Origin{Cluster: name})
		m.Heard, m.Signed = c.Heard, t.Sealed[clustermesh.Origin{Cluster: name}]
		if root, known := t.Roots[name]; known {
			m.Root = root.Fingerprint()
		}
		if step := far[name]; step > 0 {
			if limit, known := gossip.Limit(step); known {
				m.Distance = limit.Milliseconds()
			} else {
				m.Distance = -1
			}
		}
		out = append(append(out, m), nodes[c.Name]...)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Pins)) {
		if !shown[name] {
			out = append(out, clusterMember(t.Pins, name, api.Unheard))
		}
	}
	for _, name := range t.Strangers {
		out = append(out, api.Member{Cluster: string(name), State: api.NotPinned})
	}
	return out
}

// travelled adds to a member which version of its record is held, how that came, and what is known of
// its clock.
func (v viewer) travelled(m *api.Member, w gossip.Ways, o clustermesh.Origin) {
	if by, known := w.Ahead[o]; known {
		seconds := by.Seconds()
		m.Ahead = &seconds
	}
	if r, held := v.state.Records.Lookup(o); held {
		m.Stamp = r.Stamp.String()
	}
	a, came := w.Arrivals[o]
	if !came {
		return
	}
	if m.Stamp = a.Stamp.String(); a.From == v.self.Origin() {
		m.Written = a.At
	} else {
		m.Received, m.From = a.At, a.From.String()
	}
}

// linkOf returns how a cluster is heard. While each daemon has a stream to each other one, that goes without
// saying.
func linkOf(w gossip.Ways, c clustermesh.ClusterName) string {
	switch here, heard := w.Linked[c]; {
	case !heard || len(w.Relays) == 0:
		return ""
	case here:
		return api.LinkStream
	}
	return api.LinkReport
}

// clusterMember returns a cluster with what is pinned of it.
func clusterMember(pins authority.Pins, name clustermesh.ClusterName, state string) api.Member {
	m := api.Member{Cluster: string(name), State: state}
	p, pinned := pins[name]
	if m.Pinned = pinned; pinned {
		m.Accepts = p.Namespaces
	}
	for _, r := range p.Roots {
		m.Keys = append(m.Keys, r.Fingerprint())
	}
	return m
}
