package standalone

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/bundle"
)

func root(b byte) (k authority.PrivateKey) {
	k[0] = b
	return k
}

func pin(cluster string, n byte) authority.Pin {
	return authority.Pin{
		Cluster: clustermesh.ClusterName(cluster), Roots: []authority.PublicKey{root(n).Public()},
		Pods:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, n, 0, 0}), 16)},
		Nodes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
	}
}

var now = time.Unix(1_800_000_000, 9)

var gossipKey = bundle.NewKey([32]byte{9})

// TestThreeClusters goes the whole way: a invites b and c, and b accepts c.
func TestThreeClusters(t *testing.T) {
	a := authority.Pins{"a": pin("a", 1)}
	b := pin("b", 2)
	b.Namespaces = []string{"shop"}
	a, forB, err := Invite(a, b, root(2), gossipKey, []string{"192.0.2.1:7946"}, now)
	if err != nil {
		t.Fatal(err)
	}
	text, err := forB.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Open(text)
	if err != nil || got.Cluster != "b" || got.GossipKey != gossipKey || string(got.Root) != root(2).Base64() || !slices.Equal(got.Seeds, forB.Seeds) {
		t.Fatalf("got %+v, %v", got, err)
	}
	offered, err := got.PinsOf()
	if err != nil {
		t.Fatal(err)
	}
	ofB, changed, err := Merge(authority.Pins{"b": offered["b"]}, "b", offered, []string{"*"})
	if err != nil || len(changed) != 1 || changed[0].Cluster != "a" || !slices.Equal(ofB["a"].Namespaces, []string{"*"}) {
		t.Fatalf("b has %v, changed %v, %v", ofB, changed, err)
	}

	a, _, err = Invite(a, pin("c", 3), root(3), gossipKey, nil, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	ofB, changed, err = Merge(ofB, "b", a, []string{"team-*"})
	if err != nil || len(changed) != 2 || ofB["c"].Roots[0] != root(3).Public() || !slices.Equal(ofB["c"].Namespaces, []string{"team-*"}) {
		t.Fatalf("b has %v, changed %v, %v", ofB, changed, err)
	}
	founded := now.UTC().Truncate(time.Second)
	if !a["a"].Joined.Equal(founded) || !a["b"].Joined.Equal(founded) || !a["c"].Joined.Equal(founded.Add(time.Hour)) || !ofB["c"].Joined.Equal(a["c"].Joined) {
		t.Errorf("joined: %v, %v, %v; b has %v for c", a["a"].Joined, a["b"].Joined, a["c"].Joined, ofB["c"].Joined)
	}
	if !slices.Equal(a["b"].Namespaces, []string{"shop"}) {
		t.Errorf("a accepts %v of b", a["b"].Namespaces)
	}
	if _, again, err := Merge(ofB, "b", a, nil); err != nil || len(again) != 0 {
		t.Errorf("the second time: changed %v, %v", again, err)
	}
}

func TestRefused(t *testing.T) {
	a := authority.Pins{"a": pin("a", 1)}
	overlap := pin("b", 2)
	overlap.Pods = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	wide := pin("b", 2)
	wide.Pods = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
	for name, c := range map[string]struct {
		newcomer authority.Pin
		message  string
	}{
		"a member":   {pin("a", 2), "cluster a is pinned already"},
		"an overlap": {overlap, "the pods of cluster a have 10.1.0.0/16, and cluster b has 10.0.0.0/8"},
		"everything": {wide, "clusters[1].pods[0]"},
	} {
		if _, _, err := Invite(a, c.newcomer, root(2), gossipKey, nil, now); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: got %v, want %q", name, err, c.message)
		}
	}
	if _, _, err := Merge(a, "a", authority.Pins{"a": pin("a", 7)}, nil); err == nil || !strings.Contains(err.Error(), "another cluster with this id") {
		t.Errorf("another root for this cluster: %v", err)
	}
	if _, _, err := Merge(a, "a", authority.Pins{"b": overlap}, nil); err == nil || !strings.Contains(err.Error(), "10.0.0.0/8") {
		t.Errorf("an overlap in what is offered: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	_, i, err := Invite(authority.Pins{"a": pin("a", 1)}, pin("b", 2), root(2), gossipKey, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Invitation){
		"another root":  func(i *Invitation) { i.Root = bundle.Key(root(5).Base64()) },
		"no root":       func(i *Invitation) { i.Root = "" },
		"no gossip key": func(i *Invitation) { i.GossipKey = "x" },
		"no pins":       func(i *Invitation) { i.Pins = nil },
		"pinned twice":  func(i *Invitation) { i.Pins = append(i.Pins, i.Pins[0]) },
	} {
		changed := i
		change(&changed)
		text, err := changed.Encode()
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(text)
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
		if err != nil && (strings.Contains(err.Error(), string(gossipKey)) || strings.Contains(err.Error(), string(changed.Root)) && changed.Root != "") {
			t.Errorf("%s: the error shows a key: %v", name, err)
		}
	}
	for _, text := range []string{"", "{}", "[]", `{"version":2}`, string(authority.Pins{"a": pin("a", 1)}.Encode())} {
		if _, err := Open([]byte(text)); err == nil {
			t.Errorf("%q is an invitation", text)
		}
	}
	if s := fmt.Sprintf("%v %+v", i, i); strings.Contains(s, string(gossipKey)) || strings.Contains(s, root(2).Base64()) {
		t.Errorf("an invitation prints its keys: %s", s)
	}
}

func FuzzOpen(f *testing.F) {
	_, i, err := Invite(authority.Pins{"a": pin("a", 1)}, pin("b", 2), root(2), gossipKey, nil, now)
	if err != nil {
		f.Fatal(err)
	}
	text, err := i.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		if i, err := Open(text); err == nil {
			if _, err := i.PinsOf(); err != nil {
				t.Fatalf("opened, and its pins are wrong: %v", err)
			}
		}
	})
}
