package daemon

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/notify"
)

// repinned is a replication that only notes the pins.
type repinned struct {
	replication
	pins []authority.Pins
}

func (r *repinned) Repin(pins authority.Pins) { r.pins = append(r.pins, pins) }

// TestPins: pins are followed when their file changes. Whatever happens to the file, the last good ones
// stay in force, over restarts too.
func TestPins(t *testing.T) {
	var root authority.PrivateKey
	root[0] = 1
	pin := func(cluster string, root authority.PrivateKey, third byte) authority.Pin {
		return authority.Pin{
			Cluster: clustermesh.ClusterName(cluster), Roots: []authority.PublicKey{root.Public()},
			Pods: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, third, 0, 0}), 16)},
		}
	}
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	alone := authority.Pins{"west": pin("west", root, 1)}
	both := authority.Pins{"west": pin("west", root, 1), "east": pin("east", authority.PrivateKey{2}, 2)}
	overlap := authority.Pins{"west": pin("west", root, 1), "east": pin("east", authority.PrivateKey{2}, 1)}
	write("root.key", root.Base64())
	write("pins.yaml", string(alone.Encode()))
	c := Config{StateDir: file("state"), Authority: AuthorityConfig{RootFile: file("root.key"), PinsFile: file("pins.yaml")}}
	life := func() (*Daemon, *repinned, error) {
		g := &repinned{}
		d := &Daemon{config: c, log: slog.New(slog.DiscardHandler), kube: noServer{}, gossip: g, who: who{Cluster: "west"}}
		d.files = d.watchFiles(c, notify.New())
		var err error
		if d.keys, err = loadKeys(c); err != nil {
			return nil, nil, err
		}
		a, err := d.authority("west")
		if err == nil {
			g.pins = append(g.pins, a.Pins)
		}
		return d, g, err
	}
	d, g, err := life()
	if err != nil || len(g.pins) != 1 || len(g.pins[0]) != 1 || len(d.followPins()) > 0 {
		t.Fatalf("pins %v, %v, problems %v", g.pins, err, d.followPins())
	}
	write("pins.yaml", string(both.Encode()))
	d.files.pins.Source().Look()
	if ps := d.followPins(); len(ps) > 0 || len(g.pins) != 2 || len(g.pins[1]) != 2 {
		t.Errorf("after a change: pins %v, problems %v", g.pins, ps)
	}
	for text, message := range map[string]string{
		"clusters: [":  "last pins stay in force",
		"clusters: []": "at least this cluster's own",
		string(authority.Pins{"east": both["east"]}.Encode()):                            "does not list this cluster, west",
		string(authority.Pins{"west": pin("west", authority.PrivateKey{9}, 1)}.Encode()): "not " + root.Public().Fingerprint(),
	} {
		write("pins.yaml", text)
		d.files.pins.Source().Look()
		if ps := d.followPins(); len(ps) != 1 || !strings.Contains(ps[0].String(), message) || len(g.pins) != 2 {
			t.Errorf("%q: problems %v, want one with %q; pins %d times", text, ps, message, len(g.pins))
		}
	}
	if err := os.Remove(file("pins.yaml")); err != nil {
		t.Fatal(err)
	}
	again, g, err := life()
	if err != nil || len(g.pins[0]) != 2 || len(again.followPins()) != 1 {
		t.Errorf("after a restart without the file: pins %v, %v", g.pins, err)
	}
	write("pins.yaml", string(overlap.Encode()))
	again.files.pins.Source().Look()
	if ps := again.followPins(); len(ps) != 1 || !strings.Contains(ps[0].String(), "10.1.0.0/16") || len(g.pins) != 2 {
		t.Errorf("overlap: problems %v, pins %v", ps, g.pins)
	}

	if err := errors.Join(os.Remove(file("pins.yaml")), os.RemoveAll(file("state"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := life(); err == nil || !strings.Contains(err.Error(), "authority.pinsFile") {
		t.Errorf("without pins at all: %v", err)
	}
	if err := os.Chmod(file("root.key"), 0o604); err != nil {
		t.Fatal(err)
	}
	if _, _, err := life(); err == nil || !strings.Contains(err.Error(), "authority.rootFile") || strings.Contains(err.Error(), root.Base64()) {
		t.Errorf("a root key that all can read: %v", err)
	}
}

func TestPrivateDir(t *testing.T) {
	fresh, open := filepath.Join(t.TempDir(), "a/b"), filepath.Join(t.TempDir(), "c")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{fresh, open, open} {
		if err := privateDir(dir); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, st.Mode(), err)
		}
	}
}
