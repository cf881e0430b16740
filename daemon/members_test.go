package daemon

import (
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip"
)

// TestMemberLinks: the list of members says to which nodes there are streams, who relays, and how
// clusters are heard.
func TestMemberLinks(t *testing.T) {
	v := twoClusters()
	n1 := clustermesh.Origin{Cluster: "b", Node: "n1"}
	for _, c := range []struct {
		what string
		ways gossip.Ways
		want []string // of the cluster b, and of its node n1
	}{
		{"a mesh", gossip.Ways{Streams: map[clustermesh.Origin]bool{n1: true}, Linked: map[clustermesh.ClusterName]bool{"b": true}}, []string{"", "stream"}},
		{"a stream to a relay", gossip.Ways{
			Relays: map[clustermesh.Origin]bool{n1: true}, Streams: map[clustermesh.Origin]bool{n1: true}, Linked: map[clustermesh.ClusterName]bool{"b": true},
		}, []string{"stream", "stream, relay"}},
		{"another relay's link", gossip.Ways{
			Relays: map[clustermesh.Origin]bool{n1: true}, Linked: map[clustermesh.ClusterName]bool{"b": false},
		}, []string{"report", "relay"}},
		{"no link", gossip.Ways{Relays: map[clustermesh.Origin]bool{n1: true}}, []string{"", "relay"}},
	} {
		var got []string
		for _, m := range v.memberList(gossip.Trust{}, c.ways, nil, nil) {
			if m.Cluster == "b" && (m.Node == "" || m.Node == "n1") {
				got = append(got, m.Link+map[bool]string{true: map[bool]string{true: ", relay", false: "relay"}[m.Link != ""]}[m.Relay])
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// TestMemberRecords: the list of members says which version of each record is held, and from which node that
// came, or that this one wrote it.
func TestMemberRecords(t *testing.T) {
	v, at := twoClusters(), time.Unix(1000, 0)
	self, other, stamp := v.self.Origin(), clustermesh.Origin{Cluster: "b", Node: "n1"}, clustermesh.Stamp{Epoch: 7, Version: 3}
	w := gossip.Ways{
		Arrivals: map[clustermesh.Origin]gossip.Arrival{
			other: {From: clustermesh.Origin{Cluster: "a", Node: "n2"}, At: at, Stamp: stamp}, self: {From: self, At: at, Stamp: stamp},
		},
		Ahead: map[clustermesh.Origin]time.Duration{other: 1500 * time.Millisecond},
	}
	for _, m := range v.memberList(gossip.Trust{}, w, nil, nil) {
		o := clustermesh.Origin{Cluster: clustermesh.ClusterName(m.Cluster), Node: clustermesh.NodeName(m.Node)}
		if came := o == other; came != m.Received.Equal(at) || came != (m.From == "a/n2") || came != (m.Ahead != nil && *m.Ahead == 1.5) {
			t.Errorf("%s: its record came at %s from %q, its clock is %v ahead", o, m.Received, m.From, m.Ahead)
		}
		if wrote := o == self; wrote != m.Written.Equal(at) {
			t.Errorf("%s: its record was written at %s", o, m.Written)
		}
		want := v.state.Records.Get(o).Stamp
		if o == other || o == self {
			want = stamp
		}
		if o.Node != "" && m.Stamp != want.String() {
			t.Errorf("%s: version %s, want %s", o, m.Stamp, want)
		}
	}
}
