package trust

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
)

// Admit returns the part of a record that its origin may write, or false and the Problem if the whole
// record is refused; see replica.Config.Admit.
func (s *verifier) Admit(by replica.Peer, e replica.Entry, now time.Time) (clustermesh.Record, clustermesh.Problem, bool) {
	o := e.Record.Origin
	if s.pins == nil {
		if err := s.room(o); err != nil {
			return clustermesh.Record{}, s.Refuse(o, by, err, now), false
		}
		return authority.AdmitUnpinned(s.receiver, e.Record), clustermesh.Problem{}, true
	}
	again := by == (replica.Peer{})
	stated, err := s.verify(e, again, now)
	if errors.Is(err, errEarly) && again {
		// It was believed before, so this machine's clock was set back. The record stays.
		err = nil
	}
	if err == nil && o.Node != "" && s.Revokes(o.Cluster, stated.Key) {
		err = ErrRevoked
		s.verified.delete(o)
	}
	if err != nil {
		return clustermesh.Record{}, s.Refuse(o, by, err, now), false
	}
	if err := s.room(o); err != nil {
		return clustermesh.Record{}, s.Refuse(o, by, err, now), false
	}
	return authority.Admit(s.receiver, s.pins[o.Cluster], stated, e.Record), clustermesh.Problem{}, true
}

// Stale reports whether all records must be admitted again, and expects that this is done: since they
// were, keys were revoked, statements were withdrawn, or addresses of this cluster's machines changed.
func (s *verifier) Stale(now time.Time) bool {
	revoked, withdrawn := s.updateRevoked(), s.updateVoid(now)
	stale := revoked || withdrawn || s.stale
	s.stale = false
	return stale
}

// maxClusters bounds the clusters that are believed without pins: anyone who has the gossip key can
// invent some.
const maxClusters = 500

// room returns an error if another record of an origin would be one too many.
func (s *verifier) room(o clustermesh.Origin) error {
	if s.records.Peek(o) != nil {
		return nil
	}
	has, clusters := s.records.Count(o.Cluster)
	switch {
	case o.Node != "" && has.Nodes >= s.pins[o.Cluster].Quota.WithDefaults().Nodes:
		return errCrowd
	case s.pins == nil && has.Records == 0 && clusters >= maxClusters:
		return errClusters
	}
	return nil
}

// Errors of room: a cluster has more nodes than its pin allows, or there are too many clusters.
var (
	errCrowd    = errors.New("it has as many nodes already as its quota allows")
	errClusters = fmt.Errorf("there are %d clusters already", maxClusters)
)

// Errors of verify: a statement begins in the future, or its cluster has stated something else since.
var (
	errEarly = errors.New("its statement is from the future")
	errOlder = errors.New("its cluster has stated something else of it since")
)

// verify returns the statement about the node that wrote a record, if the record's seal is right. Again
// is true for a record that was admitted before.
func (s *verifier) verify(e replica.Entry, again bool, now time.Time) (authority.Statement, error) {
	o := e.Record.Origin
	known, any := s.verified.of[o]
	if any && known.is(e) {
		return s.standsBy(o, known.Statement, now)
	}
	raw, err := e.Bytes()
	if err != nil {
		return authority.Statement{}, err
	}
	sum := sha256.Sum256(slices.Concat(e.Seal(), raw))
	if any && known.sum == sum {
		return s.standsBy(o, known.Statement, now)
	}
	signed, err := s.cfg.Verify(s.pins, o, raw, e.Seal(), known.Signed)
	stated := signed.Statement
	switch {
	case err != nil:
		return stated, err
	case o.Node != "" && stated.Age(now) == authority.Early:
		return stated, errEarly
	case o.Node != "" && s.isVoid(stated, now):
		return stated, errWithdrawn
	case !again && stated.Older(known.latest, now):
		return stated, errOlder
	}
	s.bound()
	next := verification{signed, sum, e.Version(), e.Seal(), stated.Latest(known.latest, now), known.replaced}
	if known.latest.Older(stated, now) && known.latest.Lasting().Exceeds(stated) {
		next.replaced = known.latest.Serial + 1
	}
	s.verified.set(o, next)
	s.addMachines(stated)
	return stated, nil
}

// is reports whether an entry is the one that was verified: that has its seal, in the same memory.
// So entries that are held need not be encoded to be admitted again.
func (v verification) is(e replica.Entry) bool {
	seal := e.Seal()
	return len(seal) > 0 && len(seal) == len(v.seal) && &seal[0] == &v.seal[0] && e.Version() == v.version
}

// standsBy returns a statement that was verified, with errWithdrawn if its cluster has withdrawn
// it.
func (s *verifier) standsBy(o clustermesh.Origin, stated authority.Statement, now time.Time) (authority.Statement, error) {
	if o.Node != "" && s.isVoid(stated, now) {
		return stated, errWithdrawn
	}
	return stated, nil
}

// VerifySeal verifies the seal of an origin's record, and returns the statement in it with its
// signed bytes. For a cluster's record, it returns only the root that sealed it. Known is the
// statement about the origin that was verified last; it is not verified again. Errors are those of
// authority.Verify.
func VerifySeal(pins authority.Pins, o clustermesh.Origin, raw, seal []byte, known Signed) (Signed, error) {
	signed := known.Bytes
	stated, err := authority.Verify(pins, o, raw, seal, func(b []byte) (authority.Statement, error) {
		if known.Bytes != nil && bytes.Equal(known.Bytes, b) {
			return known.Statement, nil
		}
		signed = b
		return authority.OpenStatement(b, pins)
	})
	return Signed{Statement: stated, Bytes: signed}, err
}

// bound makes room in verified. What is known of a node whose record is here is not forgotten.
func (s *verifier) bound() {
	if len(s.verified.of) < maxVerified {
		return
	}
	for o := range s.verified.of {
		if s.records.Peek(o) == nil {
			s.verified.delete(o)
		}
	}
}
