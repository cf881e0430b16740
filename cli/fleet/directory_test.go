package fleet

import (
	"os"
	"reflect"
	"slices"
	"testing"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/vault"
	"strait.io/strait/internal/gossipkey"
)

// TestDirectory: a directory returns what was written to it, keeps the next keys while they replace
// others, and has no copy of a new root that is the root.
func TestDirectory(t *testing.T) {
	d := directory{keyDir: keyDir(t.TempDir())}
	old, next := authority.PrivateKey{1}, authority.PrivateKey{2}
	pins := authority.Pins{"a": {Cluster: "a", Roots: []authority.PublicKey{old.Public()}}}
	pins, err := authority.ParsePins(pins.Encode())
	if err != nil {
		t.Fatal(err)
	}
	begun := vault.Keys{Own: "a", Root: old, Next: &next, Pins: pins}
	both := begun.Pinning("a", old.Public(), next.Public())
	given := both.Given()
	given.Next = nil
	for _, c := range []struct {
		what        string
		write, want vault.Keys
	}{{"the next root", begun, begun}, {"both roots", both, both}, {"the new root", both.Given(), given}, {"again", both.Given(), given}} {
		if err := d.WriteKeys(t.Context(), c.write); err != nil {
			t.Fatal(err)
		}
		if got, err := d.ReadKeys(t.Context()); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: read %+v, %v", c.what, got, err)
		}
	}
	a, b := gossipkey.Key{1}, gossipkey.Key{2}
	for _, g := range []vault.Gossip{{Ring: gossipkey.Ring{a}}, {Ring: gossipkey.Ring{a, b}, Next: &b}, {Ring: gossipkey.Ring{b}}} {
		if err := d.WriteGossip(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		if got, err := d.ReadGossip(t.Context()); err != nil || !reflect.DeepEqual(got, g) {
			t.Errorf("gossip keys: read %d, %v", len(got.Ring), err)
		}
	}
	var files []string
	entries, err := os.ReadDir(string(d.keyDir))
	for _, e := range entries {
		info, infoErr := e.Info()
		if infoErr != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info, infoErr)
		}
		files = append(files, e.Name())
	}
	if want := []string{"gossip.key", "pins.yaml", "root.key"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("the directory has %v, want %v (%v)", files, want, err)
	}
}

// TestDirectoryFinishesAfterACrash: the new root is in place and its copy is still there. The
// rotation goes on from there, and a new one does not begin.
func TestDirectoryFinishesAfterACrash(t *testing.T) {
	d := directory{keyDir: keyDir(t.TempDir())}
	old, next := authority.PrivateKey{1}, authority.PrivateKey{2}
	keys := vault.Keys{Own: "a", Root: next, Pins: authority.Pins{"a": {Cluster: "a", Roots: []authority.PublicKey{old.Public(), next.Public()}}}}
	if err := d.WriteKeys(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	if err := keepText(d.nextRoot(), next.Base64()); err != nil {
		t.Fatal(err)
	}
	got, err := d.ReadKeys(t.Context())
	if err != nil || got.Step() != vault.Forget {
		t.Errorf("the next step is %q, %v", got.Step(), err)
	}
	if err := keysRotate(t.Context(), nil, d); err == nil {
		t.Error("a new rotation began before the old root was forgotten")
	}
}
