package authority

import (
	"errors"
	"fmt"

	"strait.io/strait/clustermesh"
)

// seal is sent with a record and proves who wrote it: a signature of the record's exact bytes and, for
// the record of a node, the signed statement about that node.
type seal struct {
	_         struct{} `cbor:",toarray"`
	Signature Signature
	Statement []byte
}

// Seal signs the exact bytes of a record: with the key of its node, or with the root if it is the
// record of a cluster, which needs no statement.
func Seal(by PrivateKey, record, statement []byte) []byte {
	return must(encMode.Marshal(seal{Signature: by.sign(aboutRecord, record), Statement: statement}))
}

// Errors of Verify, besides those of OpenStatement.
var (
	// ErrUnsealed means that a record came without proof: its writer is older than seals, or has no
	// statement.
	ErrUnsealed = errors.New("it is not signed")
	// ErrForged means that a record has the signature of no key that may sign for its origin.
	ErrForged = errors.New("its origin did not sign it")
)

// Verify checks the signature of a record's bytes, and returns the statement about its node; for a
// cluster's record, only with the Root that signed it. A node's own key signs its record, and a pinned
// root that of its cluster. Open opens a statement, see OpenStatement.
func Verify(pins Pins, o clustermesh.Origin, record, proof []byte, open func([]byte) (Statement, error)) (Statement, error) {
	pin, pinned := pins[o.Cluster]
	if !pinned {
		return Statement{}, ErrNotPinned
	}
	if len(proof) == 0 {
		return Statement{}, ErrUnsealed
	}
	var s seal
	if err := decMode.Unmarshal(proof, &s); err != nil {
		return Statement{}, fmt.Errorf("decode its seal: %w", err)
	}
	keys, statement := pin.Roots, Statement{}
	if o.Node != "" {
		var err error
		if statement, err = open(s.Statement); err != nil {
			return Statement{}, err
		}
		if statement.Origin() != o {
			return Statement{}, fmt.Errorf("the statement with it is about %s: %w", statement.Origin(), ErrForged)
		}
		keys = []PublicKey{statement.Key}
	}
	for _, k := range keys {
		if k.verify(aboutRecord, record, s.Signature) {
			if o.Node == "" {
				statement.Root = k
			}
			return statement, nil
		}
	}
	return Statement{}, ErrForged
}
