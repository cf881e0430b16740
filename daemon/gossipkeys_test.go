package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

// rekeyed is a replication that only notes the keys.
type rekeyed struct {
	replication
	rings []gossipkey.Ring
}

func (r *rekeyed) Rekey(keys gossipkey.Ring) error {
	r.rings = append(r.rings, keys)
	return nil
}

// TestGossipKeysAreFollowed: the keys change with their file. Whatever happens to the file, the last
// good ones stay in force, and a Problem reports what is wrong without printing a key.
func TestGossipKeysAreFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gossip.key")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	a, b := gossipkey.Key{1}, gossipkey.Key{2}
	write(a.Base64(), 0o600)
	c := Config{Gossip: GossipConfig{KeyFile: path}}
	g := &rekeyed{}
	d := &Daemon{config: c, log: slog.New(slog.DiscardHandler), gossip: g}
	if err := d.openFiles(notify.New()); err != nil || !slices.Equal(d.files.keys.Get(), gossipkey.Ring{a}) {
		t.Fatalf("%d keys, %v", len(d.files.keys.Get()), err)
	}
	next := func() []problem.Problem {
		_, ps := d.files.keys.Next()
		return ps
	}
	if ps := next(); len(ps)+len(g.rings) != 0 {
		t.Errorf("nothing changed: problems %v, %d rings", ps, len(g.rings))
	}
	for text, mode := range map[string]os.FileMode{"": 0o600, "c2hvcnQ=": 0o600, gossipkey.Ring{a, b}.Text(): 0o644} {
		write(text, mode)
		d.files.keys.Source().Look()
		ps := next()
		if len(ps) != 1 || ps[0].Code != problem.GossipKeyUnreadable || !strings.Contains(ps[0].Message, "stays in force") || len(g.rings) != 0 {
			t.Errorf("%q with mode %o: problems %v, %d rings", text, mode, ps, len(g.rings))
		}
		if strings.Contains(ps[0].String(), b.Base64()) {
			t.Errorf("the problem tells a key: %v", ps)
		}
	}
	write(gossipkey.Ring{a, b}.Text(), 0o600)
	d.files.keys.Source().Look()
	for range 2 {
		if ps := next(); len(ps) > 0 || len(g.rings) != 1 || !slices.Equal(g.rings[0], gossipkey.Ring{a, b}) {
			t.Errorf("after a change: problems %v, %d rings", ps, len(g.rings))
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	d.files.keys.Source().Look()
	if ps := next(); len(ps) != 1 || len(g.rings) != 1 {
		t.Errorf("without the file: problems %v, %d rings", ps, len(g.rings))
	}
}
