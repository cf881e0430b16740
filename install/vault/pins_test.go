package vault

import (
	"slices"
	"testing"

	"strait.io/strait/daemon/api"
)

// TestEvictAndRevoke: each changes a copy, refuses what makes no sense, and keeps a rotation that
// was begun.
func TestEvictAndRevoke(t *testing.T) {
	w := newWorld(t, 0)
	keys := w.vaults[0].keys
	next := w.vaults[2].keys.Root
	keys.Next = &next
	got, pinned, err := keys.Evict("b")
	if _, still := got.Pins["b"]; err != nil || !pinned || still || len(got.Pins) != 2 || got.Next == nil {
		t.Errorf("evict b: %v, %v, %d pins", pinned, err, len(got.Pins))
	}
	if _, pinned, err := keys.Evict("z"); pinned || err != nil {
		t.Errorf("evict a cluster that is not pinned: %v, %v", pinned, err)
	}
	if _, _, err := keys.Evict("a"); err == nil {
		t.Error("a cluster evicted itself")
	}
	got, err = keys.Revoke("f")
	if err != nil || !slices.Equal(got.Pins["a"].Revoked, []string{"f"}) || got.Next == nil {
		t.Errorf("revoke: %v, %v", got.Pins["a"].Revoked, err)
	}
	if _, err := got.Revoke("f"); err == nil {
		t.Error("a key was revoked twice")
	}
	if len(keys.Pins) != 3 || len(keys.Pins["a"].Revoked) != 0 {
		t.Error("the keys given were changed")
	}
}

// TestKeyOf: the key comes from the node of that name in that cluster, and a node that answers
// about itself is told apart.
func TestKeyOf(t *testing.T) {
	l := api.MemberList{Items: []api.Member{
		{Cluster: "b", Node: "n1", State: api.Alive, Keys: []string{"other"}},
		{Cluster: "a", State: string(api.Here), Keys: []string{"root"}},
		{Cluster: "a", Node: "n1", State: api.Alive, Keys: []string{"one"}},
		{Cluster: "a", Node: "n2", State: api.Self, Keys: []string{"two"}},
		{Cluster: "a", Node: "n3", State: api.Alive},
	}}
	for node, want := range map[string]struct {
		key  string
		self bool
	}{"n1": {"one", false}, "n2": {"two", true}, "n3": {}, "n4": {}} {
		if key, self := KeyOf(l, "a", node); key != want.key || self != want.self {
			t.Errorf("%s: %q, %v", node, key, self)
		}
	}
}
