package trust

import (
	"fmt"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// everybody is held, but those.
type missing struct {
	none
	of map[clustermesh.Origin]bool
}

func (m missing) Peek(o clustermesh.Origin) *clustermesh.Record {
	if m.of[o] {
		return nil
	}
	return &clustermesh.Record{}
}

// TestTwins: two nodes with one key are named, each pair once, whichever of them this one is. A node that
// left is no twin.
func TestTwins(t *testing.T) {
	self := node("east", "n1")
	g := New(&Config{Node: authority.PrivateKey{1}}, self)
	left := missing{of: map[clustermesh.Origin]bool{node("east", "n9"): true}}
	g.records = left
	state := func(o clustermesh.Origin, key byte) {
		s := authority.Statement{Cluster: o.Cluster, Node: o.Node, Key: authority.PrivateKey{key}.Public()}
		g.verified.set(o, verification{Signed: Signed{Statement: s, Bytes: []byte("signed")}})
	}
	g.current.Bytes = []byte("signed")
	state(self, 1) // as others pass it on
	state(node("east", "n2"), 2)
	state(node("east", "n9"), 2)
	state(node("west", "n1"), 3)
	if ps := g.sharedKeys(); len(ps) > 0 {
		t.Errorf("each has its own: %v", ps)
	}
	state(node("east", "n3"), 1)
	state(node("west", "n2"), 3)
	got := map[string]string{}
	for _, p := range g.sharedKeys() {
		got[p.Object] = p.Message
	}
	if len(got) != 2 || !strings.Contains(got["node east/n3"], "node key of node east/n1,") || !strings.Contains(got["node west/n2"], "node key of node west/n1,") {
		t.Errorf("twins: %v", got)
	}
	for n := range byte(100) {
		state(node("west", fmt.Sprint("x", n)), 7)
	}
	if n := len(g.sharedKeys()); n > maxShared {
		t.Errorf("%d twins are named", n)
	}
}
