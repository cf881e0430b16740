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
	"slices"
	"strings"
	"time"

	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/internal/gossipkey"
)

// streamProtocol is the ALPN protocol of record streams.
const streamProtocol = "strait-records/1"

// ErrWrongKey means that the peer's certificate was made from another gossip key, or that the peer
// refused ours for that reason.
var ErrWrongKey = errors.New("the gossip key differs")

// identity is how a daemon proves on streams that it has the gossip key, and says who it is. The
// certificate authority is derived from the key alone, so that no certificates need distributing.
// It proves no more than the key does: a daemon that has the key can claim to be any node.
type identity struct {
	cas  []ed25519.PublicKey // of the keys that are accepted
	leaf tls.Certificate     // from the first of them
}

func newIdentity(keys gossipkey.Ring, self member.Peer) (identity, error) {
	var cas []ed25519.PublicKey
	var ca ed25519.PrivateKey // of the first key
	for i, key := range keys {
		seed, err := hkdf.Key(sha256.New, key[:], nil, "strait stream ca", ed25519.SeedSize)
		if err != nil {
			return identity{}, fmt.Errorf("derive stream key: %w", err)
		}
		private := ed25519.NewKeyFromSeed(seed)
		if i == 0 {
			ca = private
		}
		cas = append(cas, private.Public().(ed25519.PublicKey))
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("make stream key: %w", err)
	}
	// Neither certificate expires: a wrong clock must not split the clusterset, and the leaf lives
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
		cas:  cas,
		leaf: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private},
	}, nil
}

func never() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }

// config returns the TLS configuration for both sides: each sends its certificate and checks the
// other's. Of the protocols that both sides name, the server takes the first.
func (i identity) config(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{i.leaf},
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
func (i identity) peer(s tls.ConnectionState) (member.Peer, error) {
	if len(s.PeerCertificates) == 0 {
		return member.Peer{}, errors.New("the peer sent no certificate")
	}
	cert := s.PeerCertificates[0]
	signed := func(ca ed25519.PublicKey) bool { return ed25519.Verify(ca, cert.RawTBSCertificate, cert.Signature) }
	if !slices.ContainsFunc(i.cas, signed) {
		return member.Peer{}, ErrWrongKey
	}
	if len(cert.URIs) != 1 || cert.URIs[0].Scheme != "strait" {
		return member.Peer{}, errors.New("the peer's certificate names no node")
	}
	m, err := member.Parse(cert.URIs[0].Opaque)
	return member.Peer{ID: m, UID: cert.URIs[0].Query().Get("uid")}, err
}

// handshakeError turns the peer's refusal of our certificate into ErrWrongKey.
func handshakeError(err error) error {
	var remote *net.OpError
	if errors.As(err, &remote) && remote.Op == "remote error" && strings.Contains(remote.Err.Error(), "bad certificate") {
		return ErrWrongKey
	}
	return err
}
