package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/notify"
)

// believing is a replication that only notes whom to believe.
type believing struct {
	repinned
	all []bool
}

func (b *believing) SetLax(all bool) { b.all = append(b.all, all) }

// TestBelieveLater: pins and the word that only they count come while the daemon runs. Afterwards neither goes
// by accident, over restarts too; by the word all, they do.
func TestBelieveLater(t *testing.T) {
	root := authority.PrivateKey{1}
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	c := Config{StateDir: file("state"), Authority: AuthorityConfig{PinsFile: file("pins.yaml"), TokenFile: "/t", TrustLevelFile: file("believe")}}
	life := func() (*Daemon, *believing) {
		t.Helper()
		g := &believing{}
		d := &Daemon{config: c, log: slog.New(slog.DiscardHandler), kube: noServer{}, gossip: g, who: who{Cluster: "west"}}
		d.files = d.watchFiles(c, notify.New())
		var err error
		if d.keys, err = loadKeys(c); err != nil {
			t.Fatal(err)
		}
		a, err := d.authority("west")
		if err != nil || a.Lax != d.trust.all {
			t.Fatalf("%+v, everybody %v, %v", a, d.trust.all, err)
		}
		return d, g
	}
	turn := func(d *Daemon, what string, all bool, problems int) {
		t.Helper()
		d.files.pins.Source().Look()
		d.files.believe.Look()
		ps := slices.Concat(d.followPins(), d.followTrustLevel())
		if d.trust.all != all || len(ps) != problems || (d.trust.members == nil) != all {
			t.Errorf("%s: all %v, members %v, problems %v", what, d.trust.all, d.trust.members, ps)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, g := life()
	turn(d, "nothing", true, 0)
	write("believe", "pinned\n")
	turn(d, "the word without pins", true, 0)
	write("believe", "nobody")
	turn(d, "another word", true, 1)
	if err := os.Remove(file("believe")); err != nil {
		t.Fatal(err)
	}
	write("pins.yaml", string(authority.Pins{"west": {Cluster: "west", Roots: []authority.PublicKey{root.Public()}}}.Encode()))
	turn(d, "pins", true, 0)
	write("believe", "pinned")
	turn(d, "pins and the word", false, 0)
	if !slices.Equal(g.all, []bool{false}) || len(g.pins) != 1 {
		t.Errorf("gossip got %v, and %d pins", g.all, len(g.pins))
	}
	for _, name := range []string{"pins.yaml", "believe"} {
		if err := os.Remove(file(name)); err != nil {
			t.Fatal(err)
		}
	}
	turn(d, "without the files", false, 1)
	d, _ = life()
	turn(d, "after a restart without the files", false, 1)
	write("believe", "all")
	turn(d, "the word all", true, 1)
	if err := os.Remove(file("believe")); err != nil {
		t.Fatal(err)
	}
	if d, _ = life(); !d.trust.all {
		t.Error("after the word all, and a restart, only the pinned are believed")
	}
}
