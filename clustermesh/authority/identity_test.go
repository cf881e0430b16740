package authority

import (
	"crypto/ed25519"
	"errors"
	"testing"

	"strait.io/strait/clustermesh"
)

// TestProves: a statement proves that a key is a node's if a pinned root signed it, whenever that was.
func TestProves(t *testing.T) {
	n1 := clustermesh.Origin{Cluster: "east", Node: "n1"}
	both := pins()
	pin := both["east"]
	pin.Roots = append(pin.Roots, west.Public())
	both["east"] = pin
	old := statement()
	old.NotBefore, old.NotAfter = 1, 2
	other := statement()
	other.Cluster = "north"
	for _, c := range []struct {
		what   string
		pins   Pins
		o      clustermesh.Origin
		key    PublicKey
		signed []byte
		want   error
	}{
		{"as it should be", pins(), n1, node.Public(), must(statement().Sign(east)), nil},
		{"the new root, while both are pinned", both, n1, node.Public(), must(statement().Sign(west)), nil},
		{"the old root, while both are pinned", both, n1, node.Public(), must(statement().Sign(east)), nil},
		{"expired", pins(), n1, node.Public(), must(old.Sign(east)), nil},
		{"nothing", pins(), n1, node.Public(), nil, ErrShowsNothing},
		{"another root", pins(), n1, node.Public(), must(statement().Sign(west)), ErrNotSigned},
		{"another key", pins(), n1, west.Public(), must(statement().Sign(east)), ErrNotItsKey},
		{"another node", pins(), clustermesh.Origin{Cluster: "east", Node: "n2"}, node.Public(), must(statement().Sign(east)), ErrNotItsName},
		{"a node of another cluster", pins(), clustermesh.Origin{Cluster: "west", Node: "n1"}, node.Public(), must(statement().Sign(east)), ErrNotItsName},
		{"a cluster that is not pinned", pins(), other.Origin(), node.Public(), must(other.Sign(east)), ErrNotPinned},
	} {
		if err := c.pins.Proves(c.o, c.key, c.signed); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
	}
	if err := pins().Proves(n1, node.Public(), []byte{0x82, 1}); err == nil {
		t.Error("garbage proves something")
	}
}

func TestBelieve(t *testing.T) {
	older, proves := &clustermesh.Node{Name: "n1"}, &clustermesh.Node{Name: "n1", Proves: true}
	for _, c := range []struct {
		what    string
		pins    Pins
		cluster clustermesh.ClusterName
		proven  bool
		known   *clustermesh.Node
		want    PeerTrust
	}{
		{"no pins", nil, "east", false, proves, Trusted},
		{"not pinned", pins(), "north", false, proves, Trusted},
		{"proven", pins(), "east", true, proves, Trusted},
		{"proven, and nothing is known of it", pins(), "east", true, nil, Trusted},
		{"nothing is known of it", pins(), "east", false, nil, Doubted},
		{"an older daemon", pins(), "east", false, older, Trusted},
		{"another daemon", pins(), "east", false, proves, Impostor},
	} {
		if got := c.pins.PeerTrust(clustermesh.Origin{Cluster: c.cluster, Node: "n1"}, c.proven, c.known); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

// TestSignerHasTheKey: TLS uses the key whose public half is stated.
func TestSignerHasTheKey(t *testing.T) {
	if got := node.Signer().Public().(ed25519.PublicKey); PublicKey(got) != node.Public() {
		t.Errorf("another key: %x", got)
	}
}

// FuzzProves: whatever a certificate has, a key is proven to be a node's only if the root certified it. Half of
// the inputs are signed by the root, as a hostile cluster would.
func FuzzProves(f *testing.F) {
	f.Add(must(encMode.Marshal(statement())), true)
	f.Add(must(statement().Sign(east)), false)
	f.Add([]byte{}, false)
	n1 := statement().Origin()
	f.Fuzz(func(t *testing.T, b []byte, sign bool) {
		wire := b
		if sign {
			wire = must(encMode.Marshal(signed{Bytes: b, Signature: east.sign(aboutNode, b)}))
		}
		if pins().Proves(n1, node.Public(), wire) != nil {
			return
		}
		if s, err := OpenStatement(wire, pins()); err != nil || s.Origin() != n1 || s.Key != node.Public() {
			t.Fatalf("proven by %+v, %v", s, err)
		}
	})
}
