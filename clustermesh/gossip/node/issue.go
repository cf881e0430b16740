package node

import (
	"errors"
	"fmt"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/trust"
)

// errRootless means that a machine lost the root while a statement was requested from it.
var errRootless = errors.New("the signer does not have the root of its cluster any more")

// MayIssue returns an error if this node states nothing of that node with that key, whatever is true of it.
func (s *statements) MayIssue(want authority.Statement) error {
	switch about := want.Origin(); {
	case about.Cluster != s.cfg.Self.Cluster:
		return fmt.Errorf("%s is of another cluster than %s", about, s.cfg.Self.Cluster)
	case s.trust.Revokes(about.Cluster, want.Key):
		return trust.ErrRevoked
	}
	return nil
}

// Issue states of another node of the cluster what it wants and what is true of it by the cluster's
// objects; by nil, all is. The statement is above all others about the node that are known here, or
// that it shows, so that of two nodes that want the same, the second does not get it. Left is what
// is not stated.
func (s *statements) Issue(want authority.Statement, objects *authority.Objects, shown []byte, now time.Time) (signed []byte, left []clustermesh.Problem, err error) {
	root := s.trust.Root()
	if root == nil {
		return nil, nil, errRootless
	}
	known := authority.Known{Node: authority.Holder{Locality: want.Locality, Addresses: want.Addresses, PodCIDRs: want.Prefixes}}
	if objects != nil {
		known = s.trust.Known(want, *objects, now)
	}
	stated, left := authority.Certify(want, known, now)
	stated = stated.Above(s.trust.LatestSerial(want.Origin(), shown, now))
	if signed, err = stated.Sign(*root); err != nil {
		return nil, left, err
	}
	s.trust.AddIssued(stated)
	return signed, left, nil
}
