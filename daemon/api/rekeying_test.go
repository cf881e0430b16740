package api_test

import (
	"strings"
	"testing"

	"strait.io/strait/daemon/api"
)

// TestRekeyingIsShown: while nodes have different gossip keys, how many use which.
func TestRekeyingIsShown(t *testing.T) {
	node := func(name, state string, keys ...string) api.Member {
		return api.Member{Cluster: "a", Node: name, State: state, GossipKeys: keys}
	}
	for want, items := range map[string][]api.Member{
		"": {node("n1", api.Self, "k1"), node("n2", api.Alive, "k1"), node("n3", "held", "k0"), node("n4", api.Alive)},
		"2 of 3 nodes use k1, 1 of 3 nodes use k2": {node("n1", api.Self, "k1", "k2"), node("n2", api.Alive, "k2", "k1"), node("n3", api.Alive, "k1")},
		"1 of 2 nodes use k1, 1 do not say":        {node("n1", api.Self, "k1", "k2"), node("n2", api.Alive)},
	} {
		got := (&api.MemberList{Items: items}).Rekeying()
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("shown: %q, want %q", got, want)
		}
	}
}
