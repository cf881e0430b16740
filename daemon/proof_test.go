package daemon

import (
	"log/slog"
	"os"
	"testing"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/metrics"
	"strait.io/strait/internal/key"
)

// TestProof: a node proves the WireGuard key that it has, whichever process makes its tunnels, and another
// one after it got a new key. Without tunnels it proves nothing.
func TestProof(t *testing.T) {
	root := authority.PrivateKey{1}
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/root.key", []byte(root.Base64()), 0o600); err != nil {
		t.Fatal(err)
	}
	life := func(m MeshConfig) (authority.Statement, key.Signature) {
		t.Helper()
		c := Config{Node: "n1", StateDir: dir + "/state", Authority: AuthorityConfig{RootFile: dir + "/root.key"}, Mesh: m}
		d := &Daemon{config: c, log: slog.New(slog.DiscardHandler), kube: noServer{}, who: who{Cluster: "west"}}
		var err error
		if d.keys, err = loadKeys(c); err != nil {
			t.Fatal(err)
		}
		a, err := d.authority("west")
		if err != nil {
			t.Fatal(err)
		}
		k, err := newKernel(c, d.log, metrics.New(metrics.Build{}))
		if err != nil {
			t.Fatal(err)
		}
		return authority.Statement{Cluster: "west", Node: "n1", Key: d.keys.node.Public(), WireGuard: k.publicKey}, a.Proof
	}
	if _, p := life(MeshConfig{Mode: MeshOff}); p != (key.Signature{}) {
		t.Errorf("without tunnels, it proves %x", p)
	}
	first, p := life(MeshConfig{Implementation: "kernel"})
	if !first.WithProof(p).KeyProven {
		t.Error("it does not prove the key")
	}
	if again, p := life(MeshConfig{Implementation: "userspace"}); again.WireGuard != first.WireGuard || !again.WithProof(p).KeyProven {
		t.Error("after a restart, it does not prove the key")
	}
	if err := os.Remove(dir + "/state/wireguard.key"); err != nil {
		t.Fatal(err)
	}
	if other, p := life(MeshConfig{}); other.WireGuard == first.WireGuard || !other.WithProof(p).KeyProven || first.WithProof(p).KeyProven {
		t.Error("it does not prove the new key")
	}
}
