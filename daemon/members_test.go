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
	v, at := twoClusters(), time.Unix(1000, 0)
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
	w := gossip.Ways{Arrivals: map[clustermesh.Origin]gossip.Arrival{n1: {From: clustermesh.Origin{Cluster: "a", Node: "n2"}, At: at}}}
	for _, m := range v.memberList(gossip.Trust{}, w, nil, nil) {
		if came := m.Cluster == "b" && m.Node == "n1"; came != m.Received.Equal(at) || came != (m.From == "a/n2") {
			t.Errorf("%s/%s: its record came at %s from %q", m.Cluster, m.Node, m.Received, m.From)
		}
	}
}
