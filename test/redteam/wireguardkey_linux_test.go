package redteam

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/testutil"
)

// TestWireGuardKeyClaimed: a node of a third cluster, whose name comes before all others, states the
// WireGuard key of a node. The node keeps its tunnel, also on a machine that was installed anew and hears
// both for the first time.
func TestWireGuardKeyClaimed(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, map[string]byte{"aaa": mallory})
	w.tunnels()
	text, err := os.ReadFile(w.east.path("state/wireguard.key"))
	w.must(err)
	private, err := key.ParsePrivate(string(text))
	w.must(err)
	root := w.roots["aaa"]
	a := w.attack(origin("aaa", "n0"), &gossip.Authority{Root: &root, Node: authority.PrivateKey{66}})
	lie := content("n0", mallory, pod(mallory))
	lie.Node.PublicKey, lie.Node.WireGuardPort = private.Public(), 21821
	a.Publish(lie)
	check := func() {
		t.Helper()
		w.west.says("node aaa/n0", "WireGuard key of node east/n1")
		w.west.hasTunnel("east/n1", true)
		w.west.hasTunnel("aaa/n0", false)
	}
	check()
	w.west.stop()
	w.must(os.RemoveAll(w.west.path("state")))
	w.west.start()
	check()
}

// tunnels starts both daemons again with a tunnel between them.
func (w *world) tunnels() {
	w.Helper()
	testutil.NeedTun(w)
	for i, m := range []*member{w.west, w.east} {
		m.stop()
		m.config = map[string]any{"mesh": map[string]any{"mode": "wireguard", "device": fmt.Sprintf("str%d-%d", os.Getpid()%10_000_000, i), "port": 21820 + i}}
		w.Cleanup(func() { // the tunnel's process outlives the daemon's
			if out, err := exec.Command(filepath.Join(w.programs, "straitd"), "cleanup", "--config", m.path("strait.yaml")).CombinedOutput(); err != nil {
				w.Errorf("straitd cleanup: %v: %s", err, out)
			}
		})
		m.start()
	}
	w.west.hasTunnel("east/n1", true)
}

// hasTunnel waits until tunnels lead to a node, or none can.
func (m *member) hasTunnel(node string, want bool) {
	m.w.Helper()
	testutil.Eventually(m.w, patience, func() error {
		ctx, cancel := context.WithTimeout(m.w.Context(), 2*time.Second)
		defer cancel()
		nodes, err := client.OnSocket(m.path("run/strait.sock")).Nodes(ctx)
		if err != nil {
			return err
		}
		for _, n := range nodes.Items {
			if n.Cluster+"/"+n.Name == node && n.Peer != nil && (n.Peer.NoTunnel == "") == want {
				return nil
			}
		}
		return fmt.Errorf("want a tunnel to %s: %t: %+v", node, want, nodes.Items)
	})
}
