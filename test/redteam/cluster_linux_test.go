package redteam

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// TestClusterAlone: a cluster that was taken over has its root, and all others pinned it. It can lie
// about the Services that they accept from it, inside its own ranges.
func TestClusterAlone(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, map[string]byte{"mallory": mallory})
	frontends := w.west.frontends()
	root, key := w.roots["mallory"], authority.PrivateKey{66}
	own := netip.MustParseAddr("10.66.1.7")
	lie := content("n0", mallory, own, pod(westNumber), pod(eastNumber), machine(eastNumber), stolen,
		netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("10.66.9.9"))
	lie.Node.Prefixes = append(lie.Node.Prefixes, netip.MustParsePrefix("8.8.8.0/24"), netip.MustParsePrefix("0.0.0.0/1"), netip.MustParsePrefix("10.1.0.0/16"))
	lie.Node.Addresses = append(lie.Node.Addresses, machine(westNumber), stolen)
	lie.Endpoints = append(lie.Endpoints, endpoint("kube-system", "n0", own), endpoint("default", "n7", own))
	victims := authority.Statement{
		Cluster: "east", Node: "n8", Key: key.Public(), NotBefore: time.Now().Unix(), NotAfter: time.Now().Add(time.Hour).Unix(),
	}
	forged, err := victims.Sign(root)
	w.must(err)
	a := w.attack(origin("mallory", "n0"), &gossip.Authority{Root: &root, Node: key},
		w.sealed(w.forge(origin("east", "n8"), 0, content("n8", eastNumber, stolen)), key, forged),
		w.sealed(w.forge(origin("east", ""), time.Minute, clustermesh.Content{Nodes: []clustermesh.NodeName{"n9"}}), root, nil),
	)
	a.Publish(lie)
	export := func(namespace string, port clustermesh.ServicePort) clustermesh.Export {
		return clustermesh.Export{
			Service: clustermesh.ServiceName{Namespace: namespace, Name: "serve"}, Type: clustermesh.ClusterSetIP,
			Created: time.Now().Unix(), Ports: []clustermesh.ServicePort{port},
		}
	}
	a.lead(clustermesh.Content{
		Exports: []clustermesh.Export{
			export("default", clustermesh.ServicePort{Name: "http", Port: 80, Proto: l4.TCP}),
			export("kube-system", clustermesh.ServicePort{Port: 443, Proto: l4.TCP}),
		},
		Nodes: []clustermesh.NodeName{"n0"},
	})
	w.west.says("STR2304", "mallory/n0", "8.8.8.0/24 is not in the pinned pod ranges")
	w.west.says("STR2304", "mallory/n0", "192.0.2.1 is not in the pinned node ranges")
	w.west.says("STR2304", "it is not in the prefixes of node mallory/n0")
	w.west.says("STR2304", "kube-system/serve of cluster mallory", "accepts namespaces [default]")
	w.west.says("STR2307", "cluster east", "another root")
	w.west.says("STR2308", "cluster east", "neither its node nor its cluster made")
	w.west.balances(pod(eastNumber), own)
	w.east.balances(pod(eastNumber))
	if now := w.west.frontends(); now != frontends {
		t.Errorf("the frontends were %s and are %s", frontends, now)
	}

	// Without its pin it is a stranger.
	delete(w.pins, "mallory")
	w.west.write("pins.yaml", string(w.pins.Encode()))
	w.west.balances(pod(eastNumber))
	w.west.says("STR2305", "cluster mallory")
	w.east.balances(pod(eastNumber))
}

// TestInventedWitnesses: while the daemon of a machine is down, a cluster that was taken over invents nodes
// that all call the machine dead. Its pods stay: other clusters' nodes alone have no say in that.
func TestInventedWitnesses(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, map[string]byte{"mallory": mallory})
	end := w.west.always(pod(eastNumber))
	w.east.stop()
	dead := []clustermesh.Silence{{Origin: origin("east", "n1"), Epoch: uint64(time.Now().UnixNano())}}
	root, key := w.roots["mallory"], authority.PrivateKey{66}
	var nodes []clustermesh.NodeName
	var entries []replica.Entry
	for n := range 5 {
		o := origin("mallory", fmt.Sprint("w", n))
		statement, err := authority.Statement{
			Cluster: o.Cluster, Node: o.Node, Key: key.Public(), NotBefore: time.Now().Unix(), NotAfter: time.Now().Add(time.Hour).Unix(),
		}.Sign(root)
		w.must(err)
		said := content(string(o.Node), mallory)
		said.Silent = dead
		entries, nodes = append(entries, w.sealed(w.forge(o, 0, said), key, statement)), append(nodes, o.Node)
	}
	a := w.attack(origin("mallory", "n0"), &gossip.Authority{Root: &root, Node: key}, entries...)
	said := content("n0", mallory)
	said.Silent = dead
	a.Publish(said)
	a.lead(clustermesh.Content{Nodes: append(nodes, "n0")})
	testutil.Eventually(t, patience, func() error {
		s, err := w.west.status()
		if err != nil {
			return err
		}
		for _, c := range s.Clusters {
			if c.Name == "mallory" && c.Nodes == 6 {
				return nil
			}
		}
		return fmt.Errorf("the witnesses are not heard: %+v", s.Clusters)
	})
	time.Sleep(5 * time.Second) // longer than a death takes
	end()
	w.west.balances(pod(eastNumber))
	w.east.start()
	w.east.write("manifests/serve.yaml", manifestServe(moved))
	w.west.balances(moved)
}
