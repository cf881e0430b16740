package fleet

import (
	"slices"
	"strings"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/install/cluster"
	"strait.io/strait/internal/gossipkey"
)

// TestGossipRotation: clusters that an interrupted rotation left at different steps go on together, the
// last first. At no time are two of them without a key that both accept.
func TestGossipRotation(t *testing.T) {
	a, b := gossipkey.Key{1}, gossipkey.Key{2}
	for name, begin := range map[string][]gossipkey.Ring{
		"from the start":               {{a}, {a}},
		"one accepts the next":         {{a}, {a, b}},
		"one uses the next":            {{b, a}, {a, b}},
		"one has the next alone":       {{b, a}, {b}},
		"all have it, but did not say": {{b}, {b}},
	} {
		r := &gossipRotation{next: b}
		for _, ring := range begin {
			r.keys = append(r.keys, cluster.GossipKeys{Ring: ring})
		}
		steps := 0
		for ; r.step(); steps++ {
			one, two := r.keys[0].Ring, r.keys[1].Ring
			if !slices.Contains(one, two[0]) || !slices.Contains(two, one[0]) {
				t.Errorf("%s: after %d steps one does not accept what the other uses", name, steps+1)
			}
		}
		if steps > 3 || !slices.Equal(r.keys[0].Ring, gossipkey.Ring{b}) || !slices.Equal(r.keys[1].Ring, gossipkey.Ring{b}) {
			t.Errorf("%s: %d steps, not to the next key alone", name, steps)
		}
	}
}

// TestGossipRotationChoosesTheNextKey: the one of a rotation that was begun, or else a new one. Clusters
// that have nothing in common are not joined by it.
func TestGossipRotationChoosesTheNextKey(t *testing.T) {
	a, b, c := gossipkey.Key{1}, gossipkey.Key{2}, gossipkey.Key{3}
	rotation := func(keys ...cluster.GossipKeys) *gossipRotation {
		r := &gossipRotation{keys: keys}
		for range keys {
			r.clusters = append(r.clusters, &cluster.Cluster{})
		}
		return r
	}
	fresh := rotation(cluster.GossipKeys{Ring: gossipkey.Ring{a}})
	if err := fresh.choose(); err != nil || fresh.next == a || fresh.next == (gossipkey.Key{}) {
		t.Errorf("a fresh rotation: %v", err)
	}
	begun := rotation(cluster.GossipKeys{Ring: gossipkey.Ring{a}}, cluster.GossipKeys{Ring: gossipkey.Ring{a, b}, Next: &b})
	if err := begun.choose(); err != nil || begun.next != b {
		t.Errorf("one that was begun: %v", err)
	}
	for message, r := range map[string]*gossipRotation{
		"another key": rotation(cluster.GossipKeys{Ring: gossipkey.Ring{a, c}, Next: &c}, cluster.GossipKeys{Ring: gossipkey.Ring{a, b}, Next: &b}),
		"connect":     rotation(cluster.GossipKeys{Ring: gossipkey.Ring{a}}, cluster.GossipKeys{Ring: gossipkey.Ring{c}}),
	} {
		if err := r.choose(); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("want an error with %q: %v", message, err)
		}
	}
}

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
