package redteam

import (
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"testing"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/testutil"
)

// followerNumber is that of east's second machine, which does not have the root. Its pods are in
// 10.2.3.0/24.
const followerNumber = 3

// follower starts a machine of east without the root, that shares a pod of default/serve.
func (w *world) follower(pod netip.Addr) *member {
	w.Helper()
	m := w.newFollower(pod)
	m.start()
	return m
}

// newFollower is follower, and does not start the daemon.
func (w *world) newFollower(pod netip.Addr) *member {
	w.Helper()
	m := w.member("east", followerNumber)
	m.node = "n3"
	w.must(os.Remove(m.path("root.key")))
	m.write("manifests/node.yaml", manifestFollower(""))
	m.write("manifests/serve.yaml", regexp.MustCompile("nodeName: n1").ReplaceAllString(manifestServe(pod), "nodeName: n3"))
	return m
}

func manifestFollower(key string) string {
	annotations := ""
	if key != "" {
		annotations = fmt.Sprintf(", annotations: {strait.io/node-key: %q}", key)
	}
	return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: n3%s}\nspec: {podCIDRs: [10.2.3.0/24]}\n"+
		"status: {addresses: [{type: InternalIP, address: %s}]}\n", annotations, machine(followerNumber))
}

// withMachine returns a pin of a cluster with one machine more.
func withMachine(p authority.Pin, number byte) authority.Pin {
	p.Nodes = append(p.Nodes, netip.PrefixFrom(machine(number), 32))
	return p
}

// asks returns the fingerprint with which a machine asks for a statement, as its status says.
func (m *member) asks() (key string) {
	m.w.Helper()
	testutil.Eventually(m.w, patience, func() error {
		s, err := m.status()
		if err != nil {
			return err
		}
		for _, p := range s.Problems {
			if p.Code == "STR2311" {
				if m := regexp.MustCompile(`(?:set it to|the machine's key is) (SHA256:\S+)`).FindStringSubmatch(p.Message); m != nil {
					key = m[1]
					return nil
				}
			}
		}
		return fmt.Errorf("no problem STR2311: %v", s.Problems)
	})
	return key
}

// newWorldOfThree is newWorld with a machine of east that does not have the root, and is believed.
func newWorldOfThree(t *testing.T) (*world, *member) {
	t.Helper()
	w := newWorld(t, nil)
	w.pins["east"] = withMachine(w.pins["east"], followerNumber)
	for _, m := range []*member{w.west, w.east} {
		m.write("pins.yaml", string(w.pins.Encode()))
	}
	shared := netip.MustParseAddr("10.2.3.7")
	f := w.follower(shared)
	key := f.asks()
	w.west.balances(pod(eastNumber))
	w.east.write("manifests/n3.yaml", manifestFollower(key))
	w.west.balances(pod(eastNumber), shared)
	f.saysNothing()
	// What it says can come into force before it has proven who it is. Until then, its machine is not
	// probed where its daemon listens, but only at the addresses that are stated, and here none answers.
	w.west.hearsNodes("east", 2)
	return w, f
}

// hearsNodes waits until so many nodes of a cluster are alive.
func (m *member) hearsNodes(cluster string, nodes int) {
	m.w.Helper()
	m.shows(cluster, fmt.Sprintf("with %d nodes alive", nodes), func(c api.Cluster) bool { return c.Alive == nodes })
}

// TestWithoutRoot: a machine that does not have the root is believed once the one that has it knows its
// key, and speaks for nothing but itself: it has nothing to sign for others with.
func TestWithoutRoot(t *testing.T) {
	if !inside(t) {
		return
	}
	w, f := newWorldOfThree(t)

	// The one with the root stops. The other restarts, and is believed all the same.
	w.east.stop()
	f.stop()
	moved := netip.MustParseAddr("10.2.3.8")
	f.write("manifests/serve.yaml", regexp.MustCompile("nodeName: n1").ReplaceAllString(manifestServe(moved), "nodeName: n3"))
	f.start()
	w.west.balances(pod(eastNumber), moved)
}

// TestRevokeNode: a machine that was stolen goes on saying things. One command in its own cluster makes
// all others forget it, over restarts too. With a new key it is welcome again.
func TestRevokeNode(t *testing.T) {
	if !inside(t) {
		return
	}
	w, f := newWorldOfThree(t)
	w.east.does(w.runbook("strait node revoke", 1)[0])
	w.west.balances(pod(eastNumber))
	w.east.balances(pod(eastNumber))
	w.west.says("STR2312", "cluster east", "east/n3")
	f.says("STR2312", "node east/n3", "was revoked")
	w.west.stop()
	w.west.start()
	w.west.says("STR2312", "cluster east")
	w.west.balances(pod(eastNumber))

	f.stop()
	w.must(os.Remove(f.path("state/node.key")))
	f.start()
	w.east.write("manifests/n3.yaml", manifestFollower(f.asks()))
	w.west.balances(pod(eastNumber), netip.MustParseAddr("10.2.3.7"))
	f.saysNothing()
}
