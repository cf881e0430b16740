package stream

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"strings"
	"time"

	"strait.io/strait/clustermesh/gossip/member"
)

// streamProtocol is what a record stream calls itself in TLS (ALPN).
const streamProtocol = "strait-records/1"

// ErrWrongKey means that the other side's certificate was made from another gossip key, or that it
// says so of ours.
var ErrWrongKey = errors.New("the gossip key differs")

// identity is how a daemon shows on streams that it has the gossip key, and who it is. The key alone
// makes the certificate authority, so that nothing has to be handed out. It says no more than the key
// does: who has the key can name itself as any node.
type identity struct {
	ca   ed25519.PublicKey
	leaf tls.Certificate
}

func newIdentity(key []byte, self member.Peer) (identity, error) {
	seed, err := hkdf.Key(sha256.New, key, nil, "strait stream ca", ed25519.SeedSize)
	if err != nil {
		return identity{}, fmt.Errorf("derive stream key: %w", err)
	}
	ca := ed25519.NewKeyFromSeed(seed)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("make stream key: %w", err)
	}
	// Neither certificate expires: a clock that is wrong must not part the clusterset, and the leaf lives
	// no longer than the process.
	parent := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: never()}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Unix(0, 0), NotAfter: never(),
		URIs: []*url.URL{{Scheme: "strait", Opaque: self.String(), RawQuery: url.Values{"uid": {self.UID}}.Encode()}},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, parent, public, ca)
	if err != nil {
		return identity{}, fmt.Errorf("make stream certificate: %w", err)
	}
	return identity{
		ca:   ca.Public().(ed25519.PublicKey),
		leaf: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private},
	}, nil
}

func never() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }

// config is that of both sides: each shows its certificate and checks the other's.
func (i identity) config() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{i.leaf},
		NextProtos:             []string{streamProtocol},
		ClientAuth:             tls.RequireAnyClientCert,
		SessionTicketsDisabled: true,
		// The usual check (host name, expiry, public roots) is replaced by VerifyConnection.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			_, err := i.peer(s)
			return err
		},
	}
}

// peer returns who is on the other side of a stream.
func (i identity) peer(s tls.ConnectionState) (member.Peer, error) {
	if len(s.PeerCertificates) == 0 {
		return member.Peer{}, errors.New("the peer shows no certificate")
	}
	cert := s.PeerCertificates[0]
	if !ed25519.Verify(i.ca, cert.RawTBSCertificate, cert.Signature) {
		return member.Peer{}, ErrWrongKey
	}
	if len(cert.URIs) != 1 || cert.URIs[0].Scheme != "strait" {
		return member.Peer{}, errors.New("the peer's certificate names no node")
	}
	m, err := member.Parse(cert.URIs[0].Opaque)
	return member.Peer{ID: m, UID: cert.URIs[0].Query().Get("uid")}, err
}

// handshakeError makes an ErrWrongKey of the refusal of our own certificate.
func handshakeError(err error) error {
	var remote *net.OpError
	if errors.As(err, &remote) && remote.Op == "remote error" && strings.Contains(remote.Err.Error(), "bad certificate") {
		return ErrWrongKey
	}
	return err
}
