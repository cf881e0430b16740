package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
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

// TestUnlistedCostsNothing: the API server is not asked about nodes that the cluster does not have.
func TestUnlistedCostsNothing(t *testing.T) {
	local := clustermesh.Local{Nodes: []clustermesh.Node{{Name: "n2", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}}}}
	reviews := 0
	count := func(context.Context, authority.Request, clustermesh.Local) error { reviews++; return nil }
	for i := range 100 {
		r := requested()
		r.Want.Node = clustermesh.NodeName(fmt.Sprintf("invented-%d", i))
		if identifyListed(t.Context(), r, local, count) == nil {
			t.Error("an invented node is attested")
		}
	}
	if err := identifyListed(t.Context(), requested(), local, count); err != nil || reviews != 1 {
		t.Errorf("%d reviews, %v", reviews, err)
	}
}
