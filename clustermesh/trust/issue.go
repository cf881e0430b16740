package trust

import (
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// issuer is what a machine with the root states of the nodes of its cluster, and what its leader withdraws.
type issuer struct {
	*verifier
	*credentials
	// checks is true if statements are compared with the objects of the cluster; objects are nil while
	// they are unknown. Issued is what this machine signed last for each node that requested a statement.
	checks  bool
	objects *authority.Objects
	issued  map[clustermesh.Origin]authority.Statement
	// withdrawals is what this node withdraws as the leader, and next the first of the cluster's nodes to
	// review.
	withdrawals []clustermesh.Withdrawal
	next        int
}

// CheckObjects sets whether this machine states of itself only what the objects of its cluster allow,
// and nothing before the first SetObjects.
func (s *issuer) CheckObjects(checks bool) { s.checks = checks }

// SetObjects sets what the cluster's objects list of its nodes. It must not be changed afterwards.
func (s *issuer) SetObjects(objects authority.Objects) { s.objects = &objects }

// certify returns the part of what this node wants to be stated that its cluster's objects, and what was
// stated of others, allow. Known is false while the objects are unknown.
func (s *issuer) certify(now time.Time) (stated authority.Statement, withheld []clustermesh.Problem, known bool) {
	switch {
	case !s.checks || s.listed == nil: // there is nothing to compare with
		return s.wanted.Signed(now), nil, true
	case s.objects == nil:
		return authority.Statement{}, nil, false
	}
	k := s.Known(s.wanted, *s.objects, now)
	k.Node.Name = s.wanted.Node
	if len(k.Node.Addresses) == 0 { // the operator configured gossip.advertise
		k.Node.Addresses = s.wanted.Addresses
	}
	stated, withheld = authority.Certify(s.wanted, k, now)
	return stated, withheld, true
}

// outdated reports whether the statement about this node differs from what its root would state now.
func (s *issuer) outdated(now time.Time) bool {
	if s.cfg.Root == nil || s.current.Bytes == nil {
		return false
	}
	stated, _, known := s.certify(now)
	return known && !s.current.Satisfies(stated)
}

// Known returns what this machine knows when it issues a statement about a node of its cluster.
func (s *issuer) Known(want authority.Statement, objects authority.Objects, now time.Time) authority.Known {
	k := authority.Known{Pins: s.listed, ClusterSetIPs: s.cfg.Ranges, ClusterIPs: objects.ClusterIPs}
	listed := make(map[clustermesh.NodeName]bool, len(objects.Nodes))
	for _, h := range objects.Nodes {
		listed[h.Name] = true
		h.Stated = s.inForce(clustermesh.Origin{Cluster: s.self.Cluster, Node: h.Name}, now)
		if h.Name == want.Node {
			k.Node = h
		} else {
			k.Others = append(k.Others, h)
		}
	}
	if own := (clustermesh.Origin{Cluster: s.self.Cluster, Node: want.Node}); !listed[want.Node] {
		k.Node.Stated = s.inForce(own, now)
	}
	for o, v := range s.verified.of {
		if s.records.Peek(o) == nil || o.Node == "" {
			continue
		}
		switch {
		case o.Cluster != s.self.Cluster:
			k.Foreign = append(k.Foreign, v.Statement)
		case !objects.All && !listed[o.Node] && o.Node != want.Node:
			k.Others = append(k.Others, authority.Holder{Name: o.Node, Stated: s.inForce(o, now)})
		}
	}
	return k
}

// inForce returns the last statement about a node of this cluster that is known; zero if there is none, or it
// was withdrawn. One that this machine issued counts before its node shows it.
func (s *issuer) inForce(o clustermesh.Origin, now time.Time) authority.Statement {
	if o == s.self && s.current.Bytes != nil {
		return s.current.Statement
	}
	stated := s.verified.of[o].Statement
	if issued, any := s.issued[o]; any && issued.Serial > stated.Serial {
		stated = issued
	}
	if s.isVoid(stated, now) {
		return authority.Statement{}
	}
	return stated
}

// LatestSerial returns the highest serial seen for a node, including that of a statement which the node
// shows and another signer issued.
func (s *credentials) LatestSerial(o clustermesh.Origin, shown []byte, now time.Time) uint64 {
	latest := s.latest(o, now)
	if stated, err := authority.OpenStatement(shown, s.listed); err == nil && stated.Origin() == o {
		latest = max(latest, stated.Serial)
	}
	return latest
}

// AddIssued notes a statement that this machine issued to another one.
func (s *issuer) AddIssued(stated authority.Statement) {
	if len(s.issued) >= maxVerified {
		clear(s.issued)
	}
	s.issued[stated.Origin()] = stated
}
