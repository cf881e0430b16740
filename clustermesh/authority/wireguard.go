package authority

import (
	"fmt"
	"io"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/problem"
)

// WireGuard's public keys are in records that every node reads. So a node also proves that it has the
// private key, by signing its name and its node key with it. The proof is part of the statement, so that
// every reader can check it. It is invalid for another node or another node key.

// provenKey is the message of a proof, besides aboutKey.
type provenKey struct {
	_         struct{} `cbor:",toarray"`
	Cluster   clustermesh.ClusterName
	Node      clustermesh.NodeName
	Key       PublicKey
	WireGuard key.Public
}

func (p provenKey) bytes() []byte { return append([]byte(aboutKey), must(encMode.Marshal(p))...) }

// ProveKey returns the proof that a node with a node key has the private key of its tunnels.
func ProveKey(random io.Reader, o clustermesh.Origin, node PublicKey, k key.Private) (key.Signature, error) {
	return k.Sign(random, provenKey{Cluster: o.Cluster, Node: o.Node, Key: node, WireGuard: k.Public()}.bytes())
}

// WithProof returns the statement with a proof, and sets KeyProven to whether it is valid.
func (s Statement) WithProof(p key.Signature) Statement {
	about := provenKey{Cluster: s.Cluster, Node: s.Node, Key: s.Key, WireGuard: s.WireGuard}
	s.Proof = p
	s.KeyProven = p != (key.Signature{}) && s.WireGuard.Verify(about.bytes(), p)
	return s
}

// wireGuard returns the statement without a WireGuard key whose proof is wrong, or that is another node's.
// A node that proves its key gets it, even if others claim it too. Of nodes without a proof, such as those
// of the previous version, the one whose statement has the key keeps it.
func (c *certifier) wireGuard(s Statement) Statement {
	given := s.Proof != (key.Signature{})
	if s = s.WithProof(s.Proof); s.KeyProven {
		return s
	}
	switch by, taken := c.keyHolder(s.WireGuard); {
	case s.WireGuard.IsZero():
	case given:
		c.refuseKey(fmt.Sprintf("it claims the WireGuard key %s, and its proof that it has the private key is wrong", s.WireGuard),
			"restart straitd on that machine; if the problem stays, check whether an attacker has the machine")
		s.WireGuard = key.Public{}
	case taken:
		c.refuseKey(fmt.Sprintf("it claims the WireGuard key %s, and that is the key of node %s, which keeps it", s.WireGuard, by),
			"upgrade straitd on both machines, so that each proves its key; on a cloned machine, also remove wireguard.key from the stateDir before")
		s.WireGuard = key.Public{}
	}
	s.Proof = key.Signature{}
	return s
}

func (c *certifier) refuseKey(message, try string) {
	c.refuse(refusedPart{code: problem.ClaimContested, field: "publicKey", message: message, try: try})
}

// keyHolder returns the other node that has a WireGuard key which this one does not prove.
func (c *certifier) keyHolder(k key.Public) (by clustermesh.Origin, taken bool) {
	had := c.Node.Stated.WireGuard == k
	holds := func(o clustermesh.Origin, s *Statement) {
		if s.WireGuard == k && o != c.about && (s.KeyProven || !had && !taken) {
			by, taken = o, true
		}
	}
	for i := range c.Others {
		holds(c.node(c.Others[i].Name), &c.Others[i].Stated)
	}
	for i := range c.Foreign {
		holds(c.Foreign[i].Origin(), &c.Foreign[i])
	}
	return by, taken
}
