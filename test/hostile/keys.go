package hostile

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/key"
)

// tunnels is the WireGuard key of a node. No other node has it.
func tunnels(o clustermesh.Origin) key.Private {
	return key.Private(sha256.Sum256([]byte("WireGuard key of " + o.String())))
}

// pair is a WireGuard key that attackers have.
type pair struct {
	private key.Private
	public  key.Public
}

var attackers = sync.OnceValue(func() (out []pair) {
	for i := range 3 {
		k := key.Private(sha256.Sum256(fmt.Append(nil, "attackers' WireGuard key ", i)))
		out = append(out, pair{k, k.Public()})
	}
	return out
})

// proofs are those that were made: to sign takes longer than a case.
var proofs sync.Map

// proofOf returns the proof that the node of a statement has a WireGuard key, the same in each call.
func proofOf(s authority.Statement, k key.Private) key.Signature {
	type made struct {
		of   clustermesh.Origin
		node authority.PublicKey
		k    key.Private
	}
	id := made{s.Origin(), s.Key, k}
	if p, known := proofs.Load(id); known {
		return p.(key.Signature)
	}
	p, err := authority.ProveKey(bytes.NewReader(make([]byte, 64)), id.of, id.node, k)
	if err != nil {
		panic(err) // the reader has enough for it
	}
	proofs.Store(id, p)
	return p
}

// anyKey draws the WireGuard key of another node, maybe in another encoding, or one of the attackers' own.
func (c *Case) anyKey() key.Public {
	k := one(c, attackers()...).public
	switch c.IntN(4) {
	case 0, 1:
		k = c.nodes[one(c, c.honestNodes()...)].stated.WireGuard
	case 2:
		k = one(c, c.others...).Stated.WireGuard
	}
	if c.chance(16) {
		k[31] |= 0x80
	}
	if c.chance(16) {
		k = one(c, key.Public{}, key.Public{1}, key.Public{byte(c.IntN(256))})
	}
	return k
}

// anyProof draws the proof of the key in a statement: a right one if attackers have the key, one of another
// node or key, bits without meaning, or none.
func (c *Case) anyProof(s authority.Statement) (p key.Signature) {
	switch c.IntN(5) {
	case 0, 1:
		i := slices.IndexFunc(attackers(), func(k pair) bool { return k.public == s.WireGuard })
		p = proofOf(s, attackers()[max(i, 0)].private)
	case 2: // whose key it is
		for _, o := range c.honestNodes() {
			if m := c.nodes[o]; m.stated.WireGuard == s.WireGuard {
				p = m.stated.Proof
			}
		}
	case 3:
		p = c.nodes[one(c, c.honestNodes()...)].stated.Proof
		p[c.IntN(len(p))] ^= 1 << c.IntN(8)
	}
	return p
}

func (c *Case) honestNodes() (out []clustermesh.Origin) {
	for _, cluster := range clusters {
		for n := 1; n <= 3; n++ {
			out = append(out, origin(cluster, n))
		}
	}
	return out
}

// provable reports whether an attacker's node can have a WireGuard key: it is its own, or one that attackers
// made.
func provable(o clustermesh.Origin, k key.Public) bool {
	return k == tunnels(o).Public() || slices.ContainsFunc(attackers(), func(p pair) bool { return p.public == k })
}

// proven returns what is wrong with the proof of an attacker's key.
func (c *Case) proven(r clustermesh.Record) error {
	if n := r.Content.Node; r.KeyProven && (n == nil || !provable(r.Origin, n.PublicKey)) {
		return fmt.Errorf("node %s proves a WireGuard key that it does not have: %+v", r.Origin, n)
	}
	return nil
}

// statedKey returns what of a node's statement is another one's key.
func (c *Case) statedKey(s authority.Statement, others []authority.Holder) error {
	theirs := func(t authority.Statement) bool { return t.WireGuard == s.WireGuard && !s.WireGuard.IsZero() }
	for _, h := range others {
		if theirs(h.Stated) {
			return fmt.Errorf("the WireGuard key of node %s is stated", h.Name)
		}
	}
	for o, m := range c.nodes {
		if o.Cluster != s.Cluster && theirs(m.stated) {
			return fmt.Errorf("the WireGuard key of node %s is stated", o)
		}
	}
	if s.KeyProven != s.WithProof(s.Proof).KeyProven || s.KeyProven && !provable(s.Origin(), s.WireGuard) || !s.KeyProven && s.Proof != (key.Signature{}) {
		return fmt.Errorf("key %s is stated, proven %t, with the proof %x", s.WireGuard, s.KeyProven, s.Proof)
	}
	return nil
}
