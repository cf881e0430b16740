package redteam

import (
	"net/netip"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
)

// TestClusterClaimsZone: a cluster that was taken over says that its pods are in the zone of the client,
// to draw all of its traffic. Its pin names another zone, so it only counts as being in the region.
func TestClusterClaimsZone(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, map[string]byte{"mallory": mallory})
	pin := w.pins["mallory"]
	pin.Regions, pin.Zones = []string{"eu"}, []string{"eu-9"}
	w.pins["mallory"] = pin
	for _, m := range []*member{w.west, w.east} {
		m.write("pins.yaml", string(w.pins.Encode()))
		place := ", labels: {topology.kubernetes.io/region: eu, topology.kubernetes.io/zone: eu-" + m.cluster + "}}"
		m.write("manifests/node.yaml", strings.Replace(manifestNode(m.number, ""), "{name: n1}", "{name: n1"+place, 1))
	}

	root, key := w.roots["mallory"], authority.PrivateKey{66}
	own := netip.MustParseAddr("10.66.1.7")
	lie := content("n0", mallory, own)
	lie.Node.Locality = clustermesh.Locality{Region: "eu", Zone: "eu-west"}
	lie.Endpoints[0].Zone = "eu-west"
	a := w.attack(origin("mallory", "n0"), &gossip.Authority{Root: &root, Node: key})
	a.Publish(lie)
	a.lead(clustermesh.Content{Nodes: []clustermesh.NodeName{"n0"}, Exports: []clustermesh.Export{exported("default", "serve", 0)}})
	w.west.says("STR2304", "node mallory/n0", "zone", `"eu-west" is none of the pinned zones`)
	w.west.balances(pod(eastNumber), own)
}
