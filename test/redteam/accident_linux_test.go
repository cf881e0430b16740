package redteam

import (
	"net/netip"
	"testing"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
)

// TestNodeAnnotatedWithEverything: who may patch a Node of one cluster cannot draw the traffic of
// others there. Both sides say what is wrong.
func TestNodeAnnotatedWithEverything(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	w.east.write("manifests/node.yaml", manifestNode(eastNumber, "10.2.1.0/24,8.8.8.0/24,128.0.0.0/2,10.1.1.0/24"))
	w.west.says("STR2304", "node east/n1", "8.8.8.0/24 is not in the pinned pod ranges of cluster east")
	w.east.says("STR2304", "node east/n1", "8.8.8.0/24", "by other clusters")
	w.west.balances(pod(eastNumber))
	w.east.balances(pod(eastNumber))
	w.east.write("manifests/node.yaml", manifestNode(eastNumber, "0.0.0.0/0"))
	w.east.says("n1", "0.0.0.0/0")
	w.west.balances(pod(eastNumber))
	w.east.write("manifests/node.yaml", manifestNode(eastNumber, ""))
	w.east.saysNothing()
	w.west.saysNothing()
}

// TestOverlappingPods: a cluster whose endpoints have another cluster's addresses harms neither. Both
// say so.
func TestOverlappingPods(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	theirs := netip.MustParseAddr("10.1.1.77")
	w.east.write("manifests/node.yaml", manifestNode(eastNumber, "10.2.1.0/24,10.1.1.64/26"))
	w.east.write("manifests/serve.yaml", manifestServe(theirs))
	w.west.balances()
	w.west.says("STR2304", "10.1.1.77", "cluster east")
	w.east.says("STR2304", "10.1.1.77", "by other clusters")
	w.east.write("manifests/node.yaml", manifestNode(eastNumber, ""))
	w.east.write("manifests/serve.yaml", manifestServe(pod(eastNumber)))
	w.west.balances(pod(eastNumber))
	w.west.saysNothing()
}

// TestTwoClustersOfOneID: a second cluster that calls itself east has a root of its own. The first
// stays what it is, and both sides are told.
func TestTwoClustersOfOneID(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	other := authority.PrivateKey{5}
	twin := w.attack(origin("east", "n5"), &gossip.Authority{Root: &other, Node: authority.PrivateKey{6}})
	twin.Publish(content("n5", eastNumber, netip.MustParseAddr("10.2.1.99")))
	w.west.says("STR2307", "cluster east", "another root", "east/n5")
	w.east.says("STR2307", "cluster east", "another root")
	w.west.balances(pod(eastNumber))
	w.east.balances(pod(eastNumber))
}
