package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/key"
)

const laptopKey = "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

// guestView has a machine in each state.
func guestView() *view {
	v := wellView()
	ranges := func(s string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(s)} }
	v.Peers = []api.Guest{
		{Name: "build", PublicKey: key.Public{2}, Range: ranges("10.99.0.3/32"), Nodes: []string{"us-east-n2"}, Elsewhere: true},
		{Name: "clash", PublicKey: key.Public{3}, Range: ranges("10.3.0.0/25"), Refused: "its range 10.3.0.0/25 overlaps 10.3.0.0/24 of node eu-central/eu-central-n1"},
		{Name: "laptop", PublicKey: key.Public{1}, Range: ranges("10.99.0.2/32"), To: ranges("10.96.0.0/16"),
			Tunnel: &api.Tunnel{Underlay: addrPort("192.0.2.7:4711"), Handshake: now.Add(-41e9)}},
		{Name: "later", PublicKey: key.Public{4}, Range: ranges("10.99.0.4/32"), Tunnel: &api.Tunnel{}},
	}
	return v
}

// TestPeerListProxy: a machine that shall call ClusterSetIPs of derived Services needs a kube-proxy on the
// node, and the list shows if there is none.
func TestPeerListProxy(t *testing.T) {
	v := guestView()
	v.Services[1].IPs = []netip.Addr{netip.MustParseAddr("10.96.3.9")}
	socket, _ := startServer(t, v)
	for _, proxied := range []bool{false, true} {
		e := world("peer", "list").on(socket)
		e.proxied = func() bool { return proxied }
		got := e.run(t)
		if listed := strings.Contains(got.stdout, "laptop calls ClusterSetIPs, such as 10.96.3.9 of default/far"); got.code != 0 || listed == proxied {
			t.Errorf("with kube-proxy %v: exit code %d\n%s", proxied, got.code, got.stdout)
		}
	}
}

// TestPeerAdd: the file has what was asked for and nothing wrong, a pin replaces that of its name, and
// the last one that is removed leaves a file without peers.
func TestPeerAdd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "peers.yaml")
	do := func(code int, message string, args ...string) {
		t.Helper()
		got := world(append(append([]string{"peer"}, args...), "--file", file)...).run(t)
		if got.code != code || !strings.Contains(got.stdout+got.stderr, message) {
			t.Errorf("strait peer %s: exit code %d, want %d with %q: %s%s", strings.Join(args, " "), got.code, code, message, got.stdout, got.stderr)
		}
	}
	has := func(want ...string) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		gs, err := authority.ParseGuests(text)
		var got []string
		for _, g := range gs {
			got = append(got, g.Name+" "+g.Range[0].String())
		}
		if err != nil || strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("the file has %q, %v; want %q", got, err, want)
		}
	}
	do(0, "showconf node NODE --as-peer", "add", "laptop", "--public-key", laptopKey, "--range", "10.99.0.2/32", "--to", "10.96.0.0/16", "--node", "n1")
	has("laptop 10.99.0.2/32")
	do(0, "", "add", "laptop", "--public-key", laptopKey, "--range", "10.99.0.9/32")
	has("laptop 10.99.0.9/32")
	do(1, "is that of", "add", "twin", "--public-key", laptopKey, "--range", "10.99.0.3/32")
	do(2, "not a WireGuard key", "add", "x", "--public-key", "abc", "--range", "10.99.0.3/32")
	do(2, "did you mean", "add", "x", "--public-key", laptopKey, "--range", "10.99.0.3/24")
	do(2, "lower case", "add", "X", "--public-key", laptopKey, "--range", "10.99.0.3/32")
	do(2, "--endpoint", "add", "x", "--public-key", laptopKey, "--range", "10.99.0.3/32", "--endpoint", "host")
	do(2, "required flag", "add", "x", "--public-key", laptopKey)
	do(1, "pins no peer nobody", "remove", "nobody")
	has("laptop 10.99.0.9/32")
	do(0, "", "remove", "laptop")
	has()
	if err := os.WriteFile(file, []byte("peers: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	do(1, "correct it first", "add", "laptop", "--public-key", laptopKey, "--range", "10.99.0.2/32")
}
