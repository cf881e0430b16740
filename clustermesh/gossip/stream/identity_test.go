package stream

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/url"
	"testing"
	"time"

	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/internal/gossipkey"
)

var selfPeer = member.Peer{ID: member.ID{Origin: named("n1"), Boot: 9}, UID: "uid"}

// shown returns what one end learns of the other in one handshake.
func shown(t testing.TB, at, by *identity) Peer {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- tls.Client(far, by.config(streamProtocol)).HandshakeContext(ctx) }()
	conn := tls.Server(near, at.config(streamProtocol))
	if err := conn.HandshakeContext(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	p, err := at.peer(conn.ConnectionState())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCredentials: each handshake proves the node's key, and shows the statement of that moment. A daemon
// without a key has one of its own, and a statement that is too large is not shown.
func TestCredentials(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var statement []byte
	id := func(c Credentials) *identity {
		t.Helper()
		i, err := newIdentity(gossipkey.Ring{{7}}, selfPeer, c)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	at, by := id(Credentials{}), id(Credentials{Key: key, Statement: func() []byte { return statement }})
	for _, now := range [][]byte{nil, []byte("first"), []byte("second"), bytes.Repeat([]byte{1}, maxShown), bytes.Repeat([]byte{1}, maxShown+1), make([]byte, 2*maxShown)} {
		statement = now
		p := shown(t, at, by)
		if len(now) > maxShown {
			now = nil
		}
		if p.Peer != selfPeer || !bytes.Equal(p.Key[:], key.Public().(ed25519.PublicKey)) || !bytes.Equal(p.Statement, now) {
			t.Errorf("with %d bytes: %s with key %x shows %d bytes", len(now), p.Peer, p.Key, len(p.Statement))
		}
		if c, err := by.certificate(); err != nil || len(c.Certificate[0]) > maxShown+1<<10 {
			t.Errorf("a certificate of %d bytes, %v", len(c.Certificate[0]), err)
		}
		if p := shown(t, by, at); p.Key == (Key{}) || bytes.Equal(p.Key[:], key.Public().(ed25519.PublicKey)) || p.Statement != nil {
			t.Errorf("a daemon without a key shows %+v", p)
		}
	}
}

// FuzzCertificate: whatever certificate arrives, it says nothing unless the gossip key made it, and then
// no more than it has room for. Half of the inputs are an extension that a holder of the gossip key
// put in.
func FuzzCertificate(f *testing.F) {
	id, err := newIdentity(gossipkey.Ring{{7}}, selfPeer, Credentials{Statement: func() []byte { return []byte("statement") }})
	if err != nil {
		f.Fatal(err)
	}
	mine, err := id.certificate()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(mine.Certificate[0], false)
	f.Add([]byte("statement"), true)
	f.Add([]byte{}, true)
	f.Add(bytes.Repeat([]byte{1}, maxShown+1), true)
	parent := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: never()}
	f.Fuzz(func(t *testing.T, b []byte, signed bool) {
		der := b
		if signed {
			leaf := &x509.Certificate{
				SerialNumber: big.NewInt(2), NotBefore: time.Unix(0, 0), NotAfter: never(),
				URIs:            []*url.URL{{Scheme: "strait", Opaque: selfPeer.String()}},
				ExtraExtensions: []pkix.Extension{{Id: statementOID, Value: b}},
			}
			var err error
			if der, err = x509.CreateCertificate(rand.Reader, leaf, parent, id.mine.Key.Public(), id.ca); err != nil {
				return
			}
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return
		}
		p, err := id.read(cert)
		switch {
		case err != nil:
		case !ed25519.Verify(id.cas[0], cert.RawTBSCertificate, cert.Signature):
			t.Fatalf("the gossip key did not make it, and it says %+v", p)
		case len(p.Statement) > maxShown, signed && len(b) <= maxShown && !bytes.Equal(p.Statement, b):
			t.Fatalf("of %d bytes it shows %d", len(b), len(p.Statement))
		}
	})
}

// BenchmarkHandshake is the cost of a handshake for both ends.
func BenchmarkHandshake(b *testing.B) {
	statement := make([]byte, 400)
	at, err := newIdentity(gossipkey.Ring{{7}}, selfPeer, Credentials{Statement: func() []byte { return statement }})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		shown(b, at, at)
	}
}
