package authority

import (
	"errors"
	"fmt"
	"slices"

	"strait.io/strait/clustermesh"
)

// A machine without the root asks one that has it, its signer, for the statement about itself. Both ends
// identify their channel by secret bytes that only they have: the keying material that TLS exports (RFC
// 5705, RFC 8446 §7.5). A relay between them has two channels, and a signature for one channel is invalid
// on the other.

// MaxRequest bounds a request, in bytes.
const MaxRequest = MaxStatement + 16<<10

// Request asks for a statement about a node.
type Request struct {
	// Want is the statement that the node asks for. Its serial and times are ignored.
	Want Statement `cbor:"1,keyasint"`
	// Token proves to the API server which node asks; empty where there is no API server.
	Token string `cbor:"2,keyasint,omitempty"`
}

// Sign returns the request for a channel, with the signature of the key that it is about.
func (r Request) Sign(node PrivateKey, channel []byte) ([]byte, error) {
	b, err := encMode.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return encMode.Marshal(signed{Bytes: b, Signature: node.sign(aboutRequest, slices.Concat(channel, b))})
}

// OpenRequest decodes a signed request, and checks that the requester has the key.
func OpenRequest(b, channel []byte) (Request, error) {
	if len(b) > MaxRequest {
		return Request{}, fmt.Errorf("request has %d bytes, and the limit is %d", len(b), MaxRequest)
	}
	var w signed
	if err := decMode.Unmarshal(b, &w); err != nil {
		return Request{}, fmt.Errorf("decode signed request: %w", err)
	}
	var r Request
	if err := decMode.Unmarshal(w.Bytes, &r); err != nil {
		return Request{}, fmt.Errorf("decode request: %w", err)
	}
	if err := r.Want.checkNode(); err != nil {
		return Request{}, fmt.Errorf("request about node %s: %w", r.Want.Origin(), err)
	}
	if !r.Want.Key.verify(aboutRequest, slices.Concat(channel, w.Bytes), w.Signature) {
		return Request{}, fmt.Errorf("request about node %s: %w", r.Want.Origin(), ErrForged)
	}
	return r, nil
}

// ProveRoot returns a proof that this end of a channel has the root.
func (k PrivateKey) ProveRoot(channel []byte) []byte {
	s := k.sign(aboutSigner, channel)
	return s[:]
}

// VerifyRoot reports whether a proof from the other end of a channel is that of a pinned root.
func (p Pin) VerifyRoot(channel, proof []byte) bool {
	return len(proof) == len(Signature{}) && slices.ContainsFunc(p.Roots, func(k PublicKey) bool {
		return k.verify(aboutSigner, channel, Signature(proof))
	})
}

// Answer is a signer's reply: a signed statement, or why there is none.
type Answer struct {
	Statement []byte `cbor:"1,keyasint,omitempty"`
	Refused   string `cbor:"2,keyasint,omitempty"`
	// Left reports the parts of the request that the statement lacks, and why.
	Left []clustermesh.Problem `cbor:"3,keyasint,omitempty"`
}

// maxRefused bounds the text of a refusal, in bytes.
const maxRefused = 1 << 10

// Encode returns the answer's bytes.
func (a Answer) Encode() []byte {
	a.Refused = a.Refused[:min(len(a.Refused), maxRefused)]
	a.Left = a.Left[:min(len(a.Left), maxRefusals)]
	return must(encMode.Marshal(a))
}

// OpenAnswer decodes an answer. Its statement must be about the requested node and key.
func OpenAnswer(b []byte, want Statement, pins Pins) (Statement, Answer, error) {
	if len(b) > MaxRequest {
		return Statement{}, Answer{}, fmt.Errorf("answer has %d bytes, and the limit is %d", len(b), MaxRequest)
	}
	var a Answer
	if err := decMode.Unmarshal(b, &a); err != nil {
		return Statement{}, Answer{}, fmt.Errorf("decode answer: %w", err)
	}
	if a.Refused != "" {
		return Statement{}, Answer{}, errors.New(a.Refused)
	}
	s, err := OpenStatement(a.Statement, pins)
	if err == nil && (s.Origin() != want.Origin() || s.Key != want.Key) {
		err = fmt.Errorf("the statement is about another node or key, %s", s.Origin())
	}
	a.Left = a.Left[:min(len(a.Left), maxRefusals)]
	return s, a, err
}
