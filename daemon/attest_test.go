package daemon

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
)

func ranges(texts ...string) (out []netip.Prefix) {
	for _, s := range texts {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// requested is a request of node n2 of cluster west.
func requested() authority.Request {
	return authority.Request{Want: authority.Statement{
		Cluster: "west", Node: "n2", Key: authority.PrivateKey{2}.Public(),
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.1")},
		Prefixes:  ranges("10.1.2.0/24", "10.1.9.0/24", "10.1.1.7/32", "10.1.3.7/32", "10.1.4.7/32"),
	}}
}

func TestAnnotated(t *testing.T) {
	key := requested().Want.Key.Fingerprint()
	for says, keys := range map[string]map[clustermesh.NodeName]string{
		"":                            {"n1": "SHA256:other", "n2": key},
		"set it to " + key:            {"n1": key},
		"the machine's key is " + key: {"n2": "SHA256:other"},
	} {
		err := annotated(t.Context(), requested(), clustermesh.Local{NodeKeys: keys})
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("keys %v: %v, want %q", keys, err, says)
		}
	}
}

// TestCertify: a node gets what its object says, and of the pods' ranges what no other node has.
func TestCertify(t *testing.T) {
	local := clustermesh.Local{
		Nodes: []clustermesh.Node{
			{Name: "n1", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, Prefixes: ranges("10.1.1.0/24")},
			{Name: "n2", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}, Prefixes: ranges("10.1.2.0/24"), Locality: clustermesh.Locality{Zone: "a"}},
			{Name: "n3"},
		},
		NodePrefixes: map[clustermesh.NodeName][]netip.Prefix{"n2": ranges("10.1.9.0/24"), "n1": ranges("10.1.3.0/24")},
		NodeClusterIPs: map[clustermesh.NodeName][]netip.Prefix{
			"n2": ranges("10.96.0.0/16"), "n1": ranges("10.96.0.0/16", "10.1.6.0/24"), // n1 alone is the entry to the second
		},
	}
	trust := gossip.Trust{
		Listed:     authority.Pins{"west": {Cluster: "west", Pods: ranges("10.1.0.0/21")}},
		Statements: map[clustermesh.Origin]authority.Statement{{Cluster: "west", Node: "n3"}: {Prefixes: ranges("10.1.5.0/24")}, {Cluster: "east", Node: "n1"}: {Prefixes: ranges("10.1.4.0/24")}},
	}
	r := requested()
	r.Want.Prefixes = append(r.Want.Prefixes, ranges("10.1.5.7/32", "10.96.0.0/16", "10.1.6.0/24", "10.97.0.0/16")...)
	s, err := certify(r, local, trust, time.Unix(1_700_000_000, 0))
	if err != nil || !slices.Equal(s.Prefixes, ranges("10.1.2.0/24", "10.1.9.0/24", "10.1.4.7/32", "10.96.0.0/16")) || len(s.Addresses) != 1 || s.Locality.Zone != "a" {
		t.Errorf("got %+v, %v", s, err)
	}
	for node, says := range map[clustermesh.NodeName]string{"n3": "no address", "n4": "no Node n4"} {
		r.Want.Node = node
		if _, err := certify(r, local, trust, time.Now()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", node, err, says)
		}
	}
}

func TestToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	k := &kubernetes{}
	if k.token("") != nil {
		t.Error("there is a token without a file")
	}
	if _, err := k.token(file)(); err == nil || !strings.Contains(err.Error(), "authority.tokenFile") {
		t.Errorf("without a file: %v", err)
	}
	if err := os.WriteFile(file, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if token, err := k.token(file)(); err != nil || token != "one" {
		t.Errorf("got %q, %v", token, err)
	}
}
