package authority

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
)

// seeded returns a private key that is the same in each run.
func seeded(b byte) (k PrivateKey) {
	for i := range k {
		k[i] = b
	}
	return k
}

var (
	east, west, node = seeded(1), seeded(2), seeded(3)
	began            = time.Unix(1_700_000_000, 0)
)

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, s := range texts {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func addrs(texts ...string) (out []netip.Addr) {
	for _, s := range texts {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// pins are those of cluster west, which pinned east.
func pins() Pins {
	return Pins{
		"east": {
			Cluster: "east", Roots: []PublicKey{east.Public()}, Namespaces: []string{"shop", "web-*"},
			Pods: prefixes("10.1.0.0/16", "fd00:1::/48"), Nodes: prefixes("192.0.2.0/28"),
		},
		"west": {Cluster: "west", Roots: []PublicKey{west.Public()}},
	}
}

var self = Self{Cluster: "west", Own: prefixes("10.2.0.0/16", "fd00:2::/48", "192.0.2.16/28", "10.96.0.0/12")}

func statement() Statement {
	return Statement{
		Cluster: "east", Node: "n1", Key: node.Public(), WireGuard: key.Public{7}, Addresses: addrs("192.0.2.1"),
		Prefixes: prefixes("10.1.1.0/24", "fd00:1:0:1::/64"), Locality: clustermesh.Locality{Region: "eu", Zone: "eu-1"},
		Serial: 1, NotBefore: began.Unix(), NotAfter: began.Add(Validity).Unix(),
	}
}

func TestStatement(t *testing.T) {
	b, err := statement().Sign(east)
	if err != nil {
		t.Fatal(err)
	}
	got, err := OpenStatement(b, pins())
	if err != nil || got.Key != node.Public() || got.Origin() != (clustermesh.Origin{Cluster: "east", Node: "n1"}) || !slices.Equal(got.Prefixes, statement().Prefixes) {
		t.Fatalf("got %+v, %v", got, err)
	}
	for i := range b {
		for _, bit := range []byte{1, 0x80} {
			forged := slices.Clone(b)
			forged[i] ^= bit
			if s, err := OpenStatement(forged, pins()); err == nil {
				t.Fatalf("with byte %d changed it is still valid: %+v", i, s)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*Statement)
		root   PrivateKey
		want   error
	}{
		"another cluster's root":       {func(*Statement) {}, west, ErrNotSigned},
		"the node itself":              {func(*Statement) {}, node, ErrNotSigned},
		"a cluster that is not pinned": {func(s *Statement) { s.Cluster = "north" }, east, ErrNotPinned},
		"speaking of another cluster":  {func(s *Statement) { s.Cluster = "west" }, east, ErrNotSigned},
	} {
		s := statement()
		c.change(&s)
		b, err := s.Sign(c.root)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := OpenStatement(b, pins()); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	rotated := pins()
	pin := rotated["east"]
	pin.Roots = []PublicKey{seeded(9).Public(), east.Public()}
	rotated["east"] = pin
	if _, err := OpenStatement(b, rotated); err != nil {
		t.Errorf("while the root is rotated: %v", err)
	}
}

func TestStatementsThatNoRootMeans(t *testing.T) {
	for name, change := range map[string]func(*Statement){
		"no node":             func(s *Statement) { s.Node = "" },
		"a name with a slash": func(s *Statement) { s.Node = "a/b" },
		"no key":              func(s *Statement) { s.Key = PublicKey{} },
		"five addresses": func(s *Statement) {
			s.Addresses = addrs("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5")
		},
		"a loopback address":   func(s *Statement) { s.Addresses = addrs("127.0.0.1") },
		"every prefix":         func(s *Statement) { s.Prefixes = prefixes("0.0.0.0/0") },
		"a link-local prefix":  func(s *Statement) { s.Prefixes = prefixes("169.254.169.254/32") },
		"an end that is first": func(s *Statement) { s.NotAfter = s.NotBefore },
	} {
		s := statement()
		change(&s)
		if _, err := s.Sign(east); err == nil {
			t.Errorf("%s: it was signed", name)
		}
		// A hostile root signs it all the same.
		b := must(encMode.Marshal(s))
		if _, err := OpenStatement(must(encMode.Marshal(signed{Bytes: b, Signature: east.sign(aboutNode, b)})), pins()); err == nil {
			t.Errorf("%s: it was accepted", name)
		}
	}
}

func TestAge(t *testing.T) {
	for after, want := range map[time.Duration]Age{
		-time.Hour: Early, -MaxAhead: Fresh, 0: Fresh, 11 * time.Hour: Fresh, 12 * time.Hour: Late, 24*time.Hour - time.Second: Late, 24 * time.Hour: Expired,
	} {
		if got := statement().Age(began.Add(after)); got != want {
			t.Errorf("%s after it began: %d, want %d", after, got, want)
		}
	}
}

// TestVerify tries each key for each origin: only a node signs its record, and only a root that of a
// cluster.
func TestVerify(t *testing.T) {
	bytes, all, stated := []byte("a record"), pins(), must(statement().Sign(east))
	open := func(b []byte) (Statement, error) { return OpenStatement(b, all) }
	clusterOf, nodeOf, other := clustermesh.Origin{Cluster: "east"}, clustermesh.Origin{Cluster: "east", Node: "n1"}, clustermesh.Origin{Cluster: "east", Node: "n2"}
	for _, c := range []struct {
		origin clustermesh.Origin
		by     PrivateKey
		ok     bool
	}{
		{nodeOf, node, true}, {nodeOf, east, false}, {nodeOf, west, false},
		{clusterOf, east, true}, {clusterOf, node, false}, {clusterOf, west, false},
		{other, node, false},
		{clustermesh.Origin{Cluster: "west"}, east, false}, {clustermesh.Origin{Cluster: "west", Node: "n1"}, node, false},
		{clustermesh.Origin{Cluster: "north"}, east, false},
	} {
		proof := Seal(c.by, bytes, stated)
		got, err := Verify(all, c.origin, bytes, proof, open)
		if (err == nil) != c.ok {
			t.Errorf("record of %s: got %v, want accepted: %v", c.origin, err, c.ok)
		}
		if c.ok {
			if c.origin.Node != "" && got.Key != node.Public() {
				t.Errorf("record of %s: got statement %+v", c.origin, got)
			}
			if _, err := Verify(all, c.origin, []byte("b record"), proof, open); !errors.Is(err, ErrForged) {
				t.Errorf("record of %s: other bytes with the same seal: %v", c.origin, err)
			}
		}
	}
	if _, err := Verify(all, nodeOf, bytes, nil, open); !errors.Is(err, ErrUnsealed) {
		t.Errorf("a record without a seal: %v", err)
	}
	if _, err := Verify(all, nodeOf, bytes, []byte("seal"), open); err == nil {
		t.Error("garbage is a seal")
	}
	b := must(encMode.Marshal(statement()))
	crossed := must(encMode.Marshal(seal{Signature: east.sign(aboutNode, b)}))
	if _, err := Verify(all, clusterOf, b, crossed, open); err == nil {
		t.Error("the signature of a statement is valid for a record")
	}
}

// TestPrivateKeysDoNotPrint also tells that their text can be read back.
func TestPrivateKeysDoNotPrint(t *testing.T) {
	k := seeded(5)
	for _, text := range []string{k.String(), fmt.Sprint(k), fmt.Sprintf("%v %+v %#v %s", k, k, k, k)} {
		if strings.Contains(text, k.Base64()) {
			t.Errorf("%q shows the key", text)
		}
	}
	back, err := ParsePrivate(k.Base64() + "\n")
	if err != nil || back != k {
		t.Errorf("got %v, %v", back, err)
	}
	if _, err := ParsePrivate("secret"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}
