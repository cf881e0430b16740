package trust

import (
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/problem"
)

// TestHeldFromTheFuture: when this machine's clock was set back, what is held stays believed, although its
// statements are from the future now. What arrives is not believed.
func TestHeldFromTheFuture(t *testing.T) {
	self, o, now := node("west", "n1"), node("east", "n1"), time.Now()
	g := New(&Config{Node: authority.PrivateKey{1}, Pins: pinned("west", "east")}, self)
	key := authority.PrivateKey{2}
	signed, err := authority.Statement{
		Cluster: o.Cluster, Node: o.Node, Key: key.Public(), NotBefore: now.Unix(), NotAfter: now.Add(authority.Validity).Unix(),
	}.Sign(*root("east"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := replica.NewEntry(clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}, Content: placed(o, 0, "1")})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := e.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	e = e.Sealed(authority.Seal(key, raw, signed))
	back := now.Add(-year)
	if _, p, ok := g.Admit(node("east", "n2"), e, back); ok || p.Code != problem.RecordAhead {
		t.Errorf("what arrives is believed: %v", p)
	}
	if _, p, ok := g.Admit(replica.Peer{}, e, back); !ok {
		t.Errorf("what is held is not believed any more: %v", p)
	}
}
