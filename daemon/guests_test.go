package daemon

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/notify"
)

// TestGuestsFile: machines are followed when their file changes, and all go with the file. A file with
// a mistake leaves the last ones in force, and is reported.
func TestGuestsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peers.yaml")
	d := &Daemon{log: slog.New(slog.DiscardHandler)}
	d.files = d.watchFiles(Config{Mesh: MeshConfig{PeersFile: path}}, notify.New())
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d.files.guests.Source().Look()
	}
	wants := func(peers, problems int) {
		t.Helper()
		if guests, ps := d.files.guests.Next(); len(ps) != problems || len(guests) != peers {
			t.Errorf("problems %v, peers %v; want %d and %d", ps, guests, problems, peers)
		}
	}
	wants(0, 0) // no file is no mistake
	laptop := authority.Guest{Name: "laptop", PublicKey: key.Public{1}, Range: []netip.Prefix{netip.MustParsePrefix("10.99.0.2/32")}}
	good := string(authority.EncodeGuests([]authority.Guest{laptop}))
	write(good)
	wants(1, 0)
	write(strings.Replace(good, "10.99.0.2/32", "10.99.0.2/24", 1))
	wants(1, 1)
	write(good)
	wants(1, 0)
	write(string(authority.EncodeGuests(nil)))
	wants(0, 0)
	write(good)
	wants(1, 0)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	d.files.guests.Source().Look()
	wants(0, 0)
	write(good)
	wants(1, 0) // the same text as before it was gone
}

// TestRevoked: a guest leaves the device when its pin has gone or has lost an address; not when it gains
// one, or when its plan is the same.
func TestRevoked(t *testing.T) {
	a, b := netip.MustParsePrefix("10.99.0.2/32"), netip.MustParsePrefix("10.99.0.3/32")
	k := key.Public{1}
	for name, c := range map[string]struct {
		want []datapath.Peer
		gone bool
	}{
		"the same":            {[]datapath.Peer{{Key: k, Guest: true, AllowedIPs: []netip.Prefix{a}}}, false},
		"one more":            {[]datapath.Peer{{Key: k, Guest: true, AllowedIPs: []netip.Prefix{a, b}}}, false},
		"another address":     {[]datapath.Peer{{Key: k, Guest: true, AllowedIPs: []netip.Prefix{b}}}, true},
		"no pin":              {[]datapath.Peer{{Key: key.Public{2}, Guest: true, AllowedIPs: []netip.Prefix{b}}}, true},
		"a node with its key": {[]datapath.Peer{{Key: k, AllowedIPs: []netip.Prefix{a}}}, true},
	} {
		got := revoked(map[key.Public][]netip.Prefix{k: {a}}, c.want)
		if c.gone != slices.Equal(got, []key.Public{k}) {
			t.Errorf("%s: revoked %v, want that: %v", name, got, c.gone)
		}
	}
}

// TestGuestsNeedTheFilter: without the filter, a device has the nodes of other clusters and no guests.
func TestGuestsNeedTheFilter(t *testing.T) {
	peers := []datapath.Peer{{Name: "b/n1"}, {Name: "peer/laptop", Guest: true}, {Name: "b/n2"}}
	if got := mayHave(peers, true); len(got) != 3 {
		t.Errorf("with the filter: %+v", got)
	}
	if got := mayHave(peers, false); len(got) != 2 || got[0].Guest || got[1].Guest || len(peers) != 3 || !peers[1].Guest {
		t.Errorf("without the filter: %+v, and the plan has %+v", got, peers)
	}
}
