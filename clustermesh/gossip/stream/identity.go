package stream

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/internal/gossipkey"
)

// The ALPN protocols of records: on bothWays both sides write, and on streamProtocol, which alone
// older daemons have, only the one that dialled.
const (
	bothWays       = "strait-records/2"
	streamProtocol = "strait-records/1"
)

// records are those that this daemon has, the better one first.
func (s *Streams) records() []string {
	if s.services.OneWay {
		return []string{streamProtocol}
	}
	return []string{bothWays, streamProtocol}
}

// ErrWrongKey is member.ErrWrongKey.
var ErrWrongKey = member.ErrWrongKey

// Key is an Ed25519 public key.
type Key = [ed25519.PublicKeySize]byte

// Peer is the daemon at the other end of a connection, as its certificate names it. The certificate proves
// that it has the gossip key, and Key.
type Peer struct {
	member.Peer
	Key Key
	// Statement is what the peer shows to prove that Key is that of its node; empty if it shows nothing.
	// A receiver must check it.
	Statement []byte
	// Trusted is what Host.Admit decided about a peer that answered us.
	Trusted bool
}

// Credentials are what a daemon proves on streams besides that it has the gossip key.
type Credentials struct {
	// Key is the node's; nil makes a key that lives no longer than the daemon.
	Key crypto.Signer
	// Statement returns what to show with it, now; empty if there is nothing. Nil shows nothing.
	Statement func() []byte
}

// maxShown bounds the statement that a certificate carries, in bytes: it is sent before the peer has
// proven anything. A longer one is not shown; the node's record, which the same key signs, has it too.
const maxShown = 16 << 10

// statementOID marks the certificate's extension that holds the statement. It is in the arc of RFC 1155
// for experiments: only strait reads these certificates.
var statementOID = asn1.ObjectIdentifier{1, 3, 6, 1, 3, 5354, 1}

// identity is how a daemon proves on streams that it has the gossip key and which node it is. The
// certificate authority is derived from the gossip key alone, so that no certificates need
// distributing; it keeps strangers out, and proves no more than the key does. That the daemon is the
// node that the certificate names is proven by its key and the statement.
type identity struct {
	self member.Peer
	cas  []ed25519.PublicKey // of the keys that are accepted
	ca   ed25519.PrivateKey  // of the first of them
	mine Credentials

	mu   sync.Mutex
	leaf *tls.Certificate // nil before the first; it shows the statement show
	show []byte
}

func newIdentity(keys gossipkey.Ring, self member.Peer, mine Credentials) (*identity, error) {
	id := &identity{self: self, mine: mine}
	for i, key := range keys {
		seed, err := hkdf.Key(sha256.New, key[:], nil, "strait stream ca", ed25519.SeedSize)
		if err != nil {
			return nil, fmt.Errorf("derive stream key: %w", err)
		}
		private := ed25519.NewKeyFromSeed(seed)
		if i == 0 {
			id.ca = private
		}
		id.cas = append(id.cas, private.Public().(ed25519.PublicKey))
	}
	if mine.Key == nil {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("make stream key: %w", err)
		}
		id.mine.Key = private
	}
	if mine.Statement == nil {
		id.mine.Statement = func() []byte { return nil }
	}
	return id, nil
}

// certificate returns the certificate that shows the statement of now.
func (i *identity) certificate() (*tls.Certificate, error) {
	statement := i.mine.Statement()
	if len(statement) > maxShown {
		statement = nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.leaf != nil && bytes.Equal(i.show, statement) {
		return i.leaf, nil
	}
	// Neither certificate expires: a wrong clock must not split the clusterset.
	parent := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: never()}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Unix(0, 0), NotAfter: never(),
		URIs: []*url.URL{{Scheme: "strait", Opaque: i.self.String(), RawQuery: url.Values{"uid": {i.self.UID}}.Encode()}},
	}
	if len(statement) > 0 {
		leaf.ExtraExtensions = []pkix.Extension{{Id: statementOID, Value: statement}}
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, parent, i.mine.Key.Public(), i.ca)
	if err != nil {
		return nil, fmt.Errorf("make stream certificate: %w", err)
	}
	i.leaf, i.show = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: i.mine.Key}, slices.Clone(statement)
	return i.leaf, nil
}

func never() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }

// config returns the TLS configuration for both sides: each sends its certificate and checks the
// other's. Of the protocols that both sides name, the server takes the first.
func (i *identity) config(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return i.certificate() },
		GetClientCertificate:   func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return i.certificate() },
		NextProtos:             protocols,
		ClientAuth:             tls.RequireAnyClientCert,
		SessionTicketsDisabled: true,
		// VerifyConnection replaces the usual check (host name, expiry, public roots).
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			_, err := i.peer(s)
			return err
		},
	}
}

// peer returns which daemon is on the other side of a stream.
func (i *identity) peer(s tls.ConnectionState) (Peer, error) {
	if len(s.PeerCertificates) == 0 {
		return Peer{}, errors.New("the peer sent no certificate")
	}
	return i.read(s.PeerCertificates[0])
}

// read returns what a certificate contains, if the gossip key made it.
func (i *identity) read(cert *x509.Certificate) (Peer, error) {
	signed := func(ca ed25519.PublicKey) bool { return ed25519.Verify(ca, cert.RawTBSCertificate, cert.Signature) }
	if !slices.ContainsFunc(i.cas, signed) {
		return Peer{}, ErrWrongKey
	}
	if len(cert.URIs) != 1 || cert.URIs[0].Scheme != "strait" {
		return Peer{}, errors.New("the peer's certificate names no node")
	}
	public, ok := cert.PublicKey.(ed25519.PublicKey)
	if !ok {
		return Peer{}, errors.New("the key of the peer's certificate is not an Ed25519 key")
	}
	p := Peer{Key: Key(public)}
	for _, e := range cert.Extensions {
		if e.Id.Equal(statementOID) && len(e.Value) <= maxShown {
			p.Statement = e.Value
		}
	}
	m, err := member.Parse(cert.URIs[0].Opaque)
	p.Peer = member.Peer{ID: m, UID: cert.URIs[0].Query().Get("uid")}
	return p, errors.Join(err, member.CheckUID(p.UID))
}

// handshakeError turns the peer's refusal of our certificate into ErrWrongKey.
func handshakeError(err error) error {
	var remote *net.OpError
	if errors.As(err, &remote) && remote.Op == "remote error" && strings.Contains(remote.Err.Error(), "bad certificate") {
		return ErrWrongKey
	}
	return err
}
