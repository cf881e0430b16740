package redteam

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/testutil"
)

// askers is how many connections to the signer an attacker has open at once.
const askers = 32

// TestSignerStarved: a holder of the gossip key keeps connections to the machine that signs for its cluster,
// and says nothing on them, or sends requests at a high pace: garbage, such as no node signed, and such as
// machines that do not exist signed. A new machine still gets its statement.
func TestSignerStarved(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	w.pins["east"] = withMachine(w.pins["east"], followerNumber)
	for _, m := range []*member{w.west, w.east} {
		m.write("pins.yaml", string(w.pins.Encode()))
	}
	for i, a := range []struct {
		what string
		ask  func(ctx context.Context, channel []byte, n int) ([]byte, error)
	}{
		{"silent", func(ctx context.Context, _ []byte, _ int) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }},
		{"garbage", func(context.Context, []byte, int) ([]byte, error) { return []byte("garbage"), nil }},
		{"unsigned", func(_ context.Context, channel []byte, n int) ([]byte, error) {
			b, err := invented(n).Sign(keyOf(n), channel)
			if err == nil {
				b[len(b)-1] ^= 1
			}
			return b, err
		}},
		{"invented", func(_ context.Context, channel []byte, n int) ([]byte, error) {
			return invented(n).Sign(keyOf(n), channel)
		}},
	} {
		t.Log(a.what)
		end := w.starve(a.ask)
		key, own := authority.PrivateKey{100, byte(i)}, netip.AddrFrom4([4]byte{10, 2, 3, byte(100 + i)})
		w.east.write("manifests/n3.yaml", manifestFollower(key.Public().Fingerprint()))
		f := w.newFollower(own)
		f.write("state/node.key", key.Base64())
		f.start()
		w.west.balances(pod(eastNumber), own)
		f.stop()
		end()
	}
}

// keyOf is the key of a machine that does not exist, and invented asks for a statement about it.
func keyOf(n int) authority.PrivateKey { return sha256.Sum256(fmt.Appendf(nil, "machine %d", n)) }

func invented(n int) authority.Request {
	return authority.Request{Token: "token", Want: authority.Statement{
		Cluster: "east", Node: clustermesh.NodeName(fmt.Sprintf("x%d", n)), Key: keyOf(n).Public(),
	}}
}

// starve asks east's signer as an attacker does, until the returned function is called.
func (w *world) starve(ask func(ctx context.Context, channel []byte, n int) ([]byte, error)) (end func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var there atomic.Int64
	var all sync.WaitGroup
	for i := range askers {
		k := w.keyholder(origin("mallory", fmt.Sprintf("n%d", i)), "")
		all.Go(func() {
			for n := i; ctx.Err() == nil; n += askers {
				_, _ = k.AskSigner(ctx, gossipOf(eastNumber), func(channel, _ []byte) ([]byte, error) {
					there.Add(1)
					return ask(ctx, channel, n)
				})
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	testutil.Eventually(w, patience, func() error {
		if there.Load() < askers/2 {
			return errors.New("the attackers do not reach the signer")
		}
		return nil
	})
	return func() { cancel(); all.Wait() }
}
