package node

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/trust"
)

// TestIssue: a machine with the root states of the other nodes of its cluster what they want, above
// what they show; two nodes that want the same prefix do not both get it; and a machine without the
// root states nothing.
func TestIssue(t *testing.T) {
	revoked := *seeded("key of west/n9")
	pins := pinned("west", "east")
	pin := pins["west"]
	pin.Revoked = []string{revoked.Public().Fingerprint()}
	pins["west"] = pin
	n := New(signing(config(origin("west", "n1"), at), pins), Saved{}, at)
	want := func(cluster, node string, k authority.PrivateKey) authority.Statement {
		o := origin(cluster, node)
		return authority.Statement{Cluster: o.Cluster, Node: o.Node, Key: k.Public(), Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.9.0/24")}}
	}
	its := *seeded("key of west/n2")
	if err := n.MayIssue(want("east", "n2", its)); err == nil {
		t.Error("it states what nodes of another cluster are")
	}
	if err := n.MayIssue(want("west", "n9", revoked)); !errors.Is(err, trust.ErrRevoked) {
		t.Errorf("a revoked key: %v", err)
	}
	if err := n.MayIssue(want("west", "n2", its)); err != nil {
		t.Error(err)
	}
	later := want("west", "n2", its)
	later.Serial, later.NotBefore, later.NotAfter = uint64(at.Add(time.Minute).UnixNano()), at.Unix(), at.Add(time.Hour).Unix()
	shown, err := later.Sign(*root("west"))
	if err != nil {
		t.Fatal(err)
	}
	objects := &authority.Objects{Nodes: []authority.Holder{{Name: "n2", Annotated: later.Prefixes}, {Name: "n3", Annotated: later.Prefixes}}}
	issue := func(w authority.Statement, shown []byte) authority.Statement {
		t.Helper()
		signed, _, err := n.Issue(w, objects, shown, at)
		if err != nil {
			t.Fatal(err)
		}
		s, err := authority.OpenStatement(signed, pins)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := issue(want("west", "n2", its), shown); len(s.Prefixes) != 1 || s.Serial <= later.Serial {
		t.Errorf("stated: %+v, above serial %d", s, later.Serial)
	}
	if s := issue(want("west", "n3", *seeded("key of west/n3")), nil); len(s.Prefixes) != 0 {
		t.Errorf("a second node gets the prefix of the first: %v", s.Prefixes)
	}
	n.SetRoot(nil, at)
	if _, _, err := n.Issue(want("west", "n2", its), objects, nil, at); !errors.Is(err, errRootless) {
		t.Errorf("without the root: %v", err)
	}
}
