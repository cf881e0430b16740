package redteam

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/internal/testutil"
)

// TestUnderlayClaimed: machines of two clusters are in one network, so their pins have one range of nodes.
// A node of a third cluster, whose name comes before all others, states the address of another cluster's
// machine, and an endpoint there: the port of its kubelet. The owner keeps its tunnel, and no connection
// goes to its machine. The same holds on a machine that lost its state, whose device still has the tunnel.
func TestUnderlayClaimed(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, map[string]byte{"aaa": mallory})
	shared := w.pins["aaa"]
	shared.Nodes = append(shared.Nodes, netip.PrefixFrom(machine(eastNumber), 32))
	w.pins["aaa"] = shared
	for _, m := range []*member{w.west, w.east} {
		m.write("pins.yaml", string(w.pins.Encode()))
	}
	w.tunnels()

	root := w.roots["aaa"]
	a := w.attack(origin("aaa", "n0"), &gossip.Authority{Root: &root, Node: authority.PrivateKey{66}})
	lie := content("n0", mallory, pod(mallory), machine(eastNumber))
	lie.Node.Addresses = []netip.Addr{machine(eastNumber)}
	lie.Node.PublicKey, lie.Node.WireGuardPort = [32]byte{66}, 21821
	lie.Endpoints[1].Ports[0].Port = 10250
	a.Publish(lie)
	check := func() {
		t.Helper()
		w.west.says("node aaa/n0", machine(eastNumber).String(), "node east/n1")
		w.west.hasTunnel("east/n1", true)
		w.west.hasTunnel("aaa/n0", false)
		w.west.balancesNever(pod(eastNumber), machine(eastNumber))
	}
	check()
	w.west.stop()
	w.must(os.RemoveAll(w.west.path("state")))
	w.west.start()
	check()
}

// balancesNever waits until the kernel balances over an address, and looks for some time that another is
// no backend.
func (m *member) balancesNever(own, other netip.Addr) {
	m.w.Helper()
	testutil.Eventually(m.w, patience, func() error {
		got, err := m.backends()
		if err == nil && !slices.Contains(got, own) {
			err = fmt.Errorf("%s balances over %v, which lacks %s", m.cluster, got, own)
		}
		return err
	})
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		got, err := m.backends()
		m.w.must(err)
		if slices.Contains(got, other) {
			m.w.Fatalf("%s balances over %v, and must not over %s", m.cluster, got, other)
		}
	}
}
