package redteam

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/clustermesh/replica/splice"
	"strait.io/strait/internal/testutil"
)

// TestWrongDeltas: a holder of the gossip key sends all daemons differences from what they hold
// that lead to records that nobody signed, to nothing, or to the record that is true with a
// signature that is not, all the time. Nothing of it comes in force, what is true still arrives,
// and no node is blamed.
func TestWrongDeltas(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	w.west.hears("east", 1)
	w.wrongDeltas(w.keyholder(origin("mallory", "x"), ""))
	w.west.saysNot("STR2403") // that another daemon publishes its record, as a node of a pinned cluster could tell it
	w.east.saysNot("STR2403")
}

// TestWrongDeltasOfNode: the same from a node that is believed to be one.
func TestWrongDeltasOfNode(t *testing.T) {
	if !inside(t) {
		return
	}
	w, f := newWorldOfThree(t)
	statement := f.stated(ranges(1))
	text, err := os.ReadFile(f.path("state/node.key"))
	w.must(err)
	key, err := authority.ParsePrivate(string(text))
	w.must(err)
	f.stop()
	mine := stream.Credentials{Key: key.Signer(), Statement: func() []byte { return statement }}
	w.wrongDeltas(w.keyholderWith(mine, origin("east", "n3"), ""), netip.MustParseAddr("10.2.3.7"))
}

// wrongDeltas has a keyholder send them. Others are the endpoints of other nodes.
func (w *world) wrongDeltas(k *keyholder, others ...netip.Addr) {
	to := []clustermesh.Origin{origin("west", "n1"), origin("east", "n1")}
	defer k.joins(to...)()
	east := origin("east", "n1")
	asks := func() {
		for _, o := range to {
			k.says(o, &replica.Want{Origins: append(to, origin("east", ""))})
		}
	}
	testutil.Eventually(w, patience, func() error {
		if _, any := k.heard.Load(east); !any {
			asks()
			return errors.New("the attacker does not know the record yet")
		}
		return nil
	})
	before := map[clustermesh.Origin]replica.Entry{}
	defer during(time.Millisecond, func(n int) {
		asks()
		k.heard.Range(func(o, e any) bool {
			now := e.(replica.Entry)
			base, known := before[now.Record.Origin]
			// For a while after a change, daemons that do not have it yet are lied to about it.
			if !known || base.Version() != now.Version() && n%200 == 0 {
				before[now.Record.Origin], base = now, now
			}
			lies := &replica.Delta{Items: []replica.DeltaItem{w.forgedDelta(now, n), w.garbledDelta(now, n)}}
			if base.Version() != now.Version() {
				lies.Items = append(lies.Items, w.unsignedDelta(base, now))
			}
			for _, node := range to {
				k.says(node, lies)
			}
			return true
		})
	})()
	for _, o := range to {
		testutil.Eventually(w, patience, func() error {
			if _, asked := k.asked.Load(o); !asked {
				return errors.New("no daemon asks the attacker for the whole record, so this shows nothing")
			}
			return nil
		})
	}
	for range 20 {
		for _, at := range []netip.Addr{pod(eastNumber), moved} {
			w.east.write("manifests/serve.yaml", manifestServe(at))
			w.west.balances(append([]netip.Addr{at}, others...)...)
		}
	}
	for _, m := range []*member{w.west, w.east} {
		m.saysNot("STR2308") // forged
		m.saysNot("STR2306") // unsigned
	}
}

// item is a difference between two entries.
func (w *world) item(base, now replica.Entry) replica.DeltaItem {
	before, err1 := base.Bytes()
	after, err2 := now.Bytes()
	w.must(err1, err2)
	hash := sha256.Sum256([]byte(now.Record.Origin.String()))
	return replica.DeltaItem{
		Of: binary.BigEndian.Uint64(hash[:]), Version: now.Version(), Base: base.Version().Sum,
		Record: splice.Diff(before, after), Seal: splice.Diff(base.Seal(), now.Seal()),
	}
}

// forgedDelta leads to a record that is newer than the true one, has the attacker's pod, and the
// true one's seal.
func (w *world) forgedDelta(now replica.Entry, n int) replica.DeltaItem {
	forged := w.forge(now.Record.Origin, time.Duration(n)*time.Millisecond, content("n1", mallory, pod(mallory)))
	return w.item(now, forged.Sealed(now.Seal()))
}

// garbledDelta is one of which a byte is wrong.
func (w *world) garbledDelta(now replica.Entry, n int) replica.DeltaItem {
	i := w.item(now, w.forge(now.Record.Origin, time.Second, now.Record.Content).Sealed(now.Seal()))
	i.Record[n%len(i.Record)] ^= byte(n/len(i.Record)) | 1
	return i
}

// unsignedDelta leads to the true record with a seal that proves nothing.
func (w *world) unsignedDelta(base, now replica.Entry) replica.DeltaItem {
	seal := append([]byte{}, now.Seal()...)
	seal[len(seal)-1] ^= 1
	return w.item(base, now.Sealed(seal))
}
