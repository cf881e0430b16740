package redteam

import (
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/l4"
)

// stolen is an address that an attacker wants connections to go to.
var stolen = netip.MustParseAddr("203.0.113.66")

// TestGossipKeyAlone: who has the gossip key and nothing else sees who is a member, and changes
// nothing.
func TestGossipKeyAlone(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	frontends := w.west.frontends()
	serve := clustermesh.ServiceName{Namespace: "default", Name: "serve"}
	own := clustermesh.Content{
		Exports:     []clustermesh.Export{{Service: serve, Type: clustermesh.ClusterSetIP, Created: 1, Ports: []clustermesh.ServicePort{{Port: 80, Proto: l4.TCP}}}},
		Allocations: []clustermesh.Allocation{{Service: serve, IP: netip.MustParseAddr("10.96.0.1")}},
	}
	// The victims' records: of the cluster, of a node, of a node that does not exist; and stamps that
	// their owners could never write above.
	entries := []replica.Entry{
		w.forge(origin("west", ""), time.Minute, own),
		w.forge(origin("east", ""), time.Minute, own),
		w.forge(origin("east", "n1"), time.Minute, content("n1", eastNumber, stolen)),
		w.forge(origin("east", "n9"), time.Minute, content("n9", eastNumber, stolen)),
		w.forge(origin("west", "n9"), 100*365*24*time.Hour, content("n9", westNumber, stolen)),
	}
	mine := authority.PrivateKey{66}
	for _, o := range []clustermesh.Origin{origin("mallory", "n1"), origin("mallory", "n2")} {
		entries = append(entries, w.forge(o, 0, content(string(o.Node), mallory, stolen)))
	}
	w.attack(origin("mallory", "n0"), &gossip.Authority{Root: &mine, Node: mine}, entries...).Publish(content("n0", mallory, stolen))
	w.west.says("cluster mallory", "not pinned", "STR2305")
	w.west.says("cluster east", "without a signature", "mallory/n0", "STR2306")
	w.west.says("cluster west", "without a signature")
	w.east.says("cluster west", "without a signature")
	w.west.balances(pod(eastNumber))
	w.east.balances(pod(eastNumber))
	if now := w.west.frontends(); now != frontends {
		t.Errorf("the frontends were %s and are %s", frontends, now)
	}

	// The victim is not silenced: what it says next is believed at once, and after a restart.
	moved := netip.MustParseAddr("10.2.1.8")
	w.east.write("manifests/serve.yaml", manifestServe(moved))
	w.west.balances(moved)
	w.west.stop()
	w.west.start()
	w.east.write("manifests/serve.yaml", manifestServe(pod(eastNumber)))
	w.west.balances(pod(eastNumber))
}

// TestNodeAlone: a node that was taken over has its own key and statement. It speaks for no other node.
func TestNodeAlone(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	key, now := authority.PrivateKey{9}, time.Now()
	statement, err := authority.Statement{
		Cluster: "east", Node: "n9", Key: key.Public(), Addresses: []netip.Addr{machine(eastNumber)}, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.2.9.0/24")},
		Serial: 1, NotBefore: now.Unix(), NotAfter: now.Add(authority.Validity).Unix(),
	}.Sign(w.roots["east"])
	w.must(err)
	inRange, outside := netip.MustParseAddr("10.2.9.7"), netip.MustParseAddr("10.2.8.7")
	lie := content("n9", eastNumber, inRange, outside, pod(westNumber), pod(eastNumber), stolen)
	lie.Node.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.2.9.0/24"), netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("0.0.0.0/1")}
	lie.Node.Locality = clustermesh.Locality{Region: "here", Zone: "here"}
	w.attack(origin("mallory", "n0"), nil,
		w.sealed(w.forge(origin("east", "n9"), 0, lie), key, statement),
		w.sealed(w.forge(origin("east", "n1"), time.Minute, content("n1", eastNumber, stolen)), key, statement),
		w.sealed(w.forge(origin("east", "n10"), 0, content("n10", eastNumber, netip.MustParseAddr("10.2.9.8"))), key, statement),
		w.sealed(w.forge(origin("east", ""), time.Minute, clustermesh.Content{Nodes: []clustermesh.NodeName{"n9"}}), key, statement),
		w.sealed(w.forge(origin("west", "n1"), time.Minute, content("n1", westNumber, stolen)), key, statement),
	)
	w.west.says("STR2308", "cluster east", "neither its node nor its cluster made")
	w.west.says("STR2304", "east/n9", "did not state that it has 10.2.0.0/16")
	w.west.says("STR2304", "not in the prefixes of node east/n9")
	// It may lie about its own pods, and that is all.
	w.west.balances(pod(eastNumber), inRange)
	w.east.balances(pod(eastNumber))
}
