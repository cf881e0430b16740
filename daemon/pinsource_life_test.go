package daemon

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/notify"
)

// TestMembersOfLives: members come into force with the seeds that they list, stay so over restarts
// when their files are gone, and leave when the own file alone is left.
func TestMembersOfLives(t *testing.T) {
	root, dir := authority.PrivateKey{1}, t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(file(name)), 0o755), os.WriteFile(file(name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	member := func(cluster string, key authority.PrivateKey, third byte) string {
		return string(authority.Member{Seeds: []string{cluster + ".example:7946"}, Pin: authority.Pin{
			Cluster: clustermesh.ClusterName(cluster), Roots: []authority.PublicKey{key.Public()},
			Pods: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, third, 0, 0}), 16)},
		}}.Encode())
	}
	write("root.key", root.Base64())
	write("pins.yaml", string(authority.Pins{"west": {Cluster: "west", Roots: []authority.PublicKey{root.Public()}}}.Encode()))
	c := Config{StateDir: file("state"), Authority: AuthorityConfig{RootFile: file("root.key"), PinsFile: file("pins.yaml"), MembersDir: file("members")}}
	life := func() *Daemon {
		t.Helper()
		d := &Daemon{config: c, log: slog.New(slog.DiscardHandler), kube: noServer{}, gossip: &repinned{}, who: who{Cluster: "west"}}
		d.files = d.watchFiles(c, notify.New())
		var err error
		if d.keys, err = loadKeys(c); err != nil {
			t.Fatal(err)
		}
		if _, err = d.authority("west"); err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := life()
	is := func(what, problem string, pinned int, seeds ...string) {
		t.Helper()
		d.files.pins.Source().Look()
		ps := d.followPins()
		if got := len(d.files.pins.Get()); got != pinned || !slices.Equal(d.trust.seeds, seeds) {
			t.Errorf("%s: %d clusters are pinned, want %d; seeds %v, want %v", what, got, pinned, d.trust.seeds, seeds)
		}
		if (len(ps) == 0) != (problem == "") || len(ps) > 0 && !strings.Contains(ps[0].String(), problem) {
			t.Errorf("%s: problems %v, want one with %q", what, ps, problem)
		}
	}
	const east = "east.example:7946"
	is("alone", "", 1)
	write("members/east.yaml", member("east", authority.PrivateKey{2}, 2))
	is("with another", "", 2, east)
	write("members/far.yaml", "cluster: far\n")
	is("with a broken file", "far.yaml: roots", 2, east)
	d = life()
	is("after a restart with it", "far.yaml: roots", 2, east)
	if err := os.RemoveAll(file("members")); err != nil {
		t.Fatal(err)
	}
	is("without all files", "all at once", 2, east)
	d = life()
	is("after a restart without them", "all at once", 2, east)
	write("members/west.yaml", member("west", authority.PrivateKey{9}, 1))
	is("with another root of its own", "not "+root.Public().Fingerprint(), 2, east)
	write("members/west.yaml", member("west", root, 1))
	is("after it left", "", 1)
	d = life()
	is("after a restart", "", 1)
}
