package replica

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// whole makes all streams of a sim whole.
func (s *sim) whole() {
	for i := range s.nodes {
		for j, p := range s.peers {
			if i != j {
				s.do(i, s.nodes[i].Connected(p, true))
			}
		}
	}
	s.settle(1)
}

// pods is the content of a node with pods, one of which is number n.
func pods(o clustermesh.Origin, count, n int) clustermesh.Content {
	c := content(o, n)
	for i := range count {
		e := c.Endpoints[0]
		e.Addr, e.Pod = netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)}), fmt.Sprintf("web-%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))[:20]
		c.Endpoints = append(c.Endpoints, e)
	}
	return c
}

// sealOf is a seal as of package authority: a signature, and a statement that stays the same.
func sealOf(e Entry) []byte {
	b, _ := e.Bytes()
	a := sha256.Sum256(b)
	return slices.Concat(a[:], bytes.Repeat(a[:1], 0), a[:], bytes.Repeat([]byte("statement "), 24))
}

// TestDeltaIsSmall: a change of one pod is sent as what differs, with its seal, and a peer passes
// it on in the same way. Who has another version gets the whole record, and so does an older
// daemon.
func TestDeltaIsSmall(t *testing.T) {
	s := newSim(t, []clustermesh.Origin{simOrigin(0), simOrigin(3)}, 1)
	s.nodes[0].seal = sealOf
	s.settle(2)
	s.do(0, s.nodes[0].Publish(pods(s.peers[0], 10, 1)))
	s.settle(2)
	sent := func(n int) (kind Kind, size int) {
		s.t.Helper()
		out := s.nodes[0].Publish(pods(s.peers[0], 10, n))
		for _, e := range out.Send {
			b, err := Encode(e.Message)
			if err != nil {
				t.Fatal(err)
			}
			kind, size = e.Message.Kind(), size+len(b)
		}
		s.do(0, out)
		return kind, size
	}
	kind, size := sent(2)
	if kind != KindSnapshot || size < 800 {
		t.Errorf("to one that has told nothing: %d bytes in kind %d", size, kind)
	}
	s.settle(1)
	s.whole()
	kind, size = sent(3)
	t.Logf("%d bytes", size)
	if kind != KindDelta || size > 200 {
		t.Errorf("to one that understands it: %d bytes in kind %d", size, kind)
	}
	s.settle(1)
	got, _ := s.nodes[1].Entry(s.peers[0])
	want, _ := s.nodes[0].Entry(s.peers[0])
	if got.version != want.version || !bytes.Equal(got.seal, want.seal) {
		t.Errorf("the other holds %v, want %v", got.version, want.version)
	}
	sent(4)
	s.flying = nil // lost unnoticed
	kind, _ = sent(5)
	if kind != KindDelta {
		t.Errorf("kind %d", kind)
	}
	for len(s.flying) > 0 {
		s.deliver(0, false, false)
	}
	if got, _ := s.nodes[1].Entry(s.peers[0]); got.Record.Stamp != (clustermesh.Stamp{Epoch: want.version.Epoch, Version: want.version.Count + 2}) {
		t.Errorf("the other holds version %v after one was lost", got.Record.Stamp)
	}
	// It is set back: its stream is one of one direction.
	s.do(0, s.nodes[0].Connected(s.peers[1], false))
	if kind, _ := sent(6); kind != KindSnapshot {
		t.Errorf("to an older daemon: kind %d", kind)
	}
}

// TestDeltaThatIsWrong: a difference that leads elsewhere, or nowhere, puts nothing in force, and
// has the whole record asked for.
func TestDeltaThatIsWrong(t *testing.T) {
	s := newSim(t, []clustermesh.Origin{simOrigin(0), simOrigin(3)}, 1)
	s.settle(2)
	s.do(0, s.nodes[0].Publish(pods(s.peers[0], 10, 1)))
	s.settle(2)
	s.whole()
	before, _ := s.nodes[1].Entry(s.peers[0])
	after := mustEntry(t, clustermesh.Record{Origin: s.peers[0], Stamp: clustermesh.Stamp{Epoch: before.version.Epoch, Version: before.version.Count + 1}, Content: pods(s.peers[0], 10, 2)})
	item, ok := change{now: after, before: before}.delta()
	if !ok {
		t.Fatal("no delta")
	}
	rapid.Check(t, func(t *rapid.T) {
		bad := item
		bad.Record = slices.Clone(item.Record)
		switch rapid.IntRange(0, 4).Draw(t, "wrong") {
		case 0:
			i := rapid.IntRange(0, len(bad.Record)-1).Draw(t, "at")
			bad.Record[i] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		case 1:
			bad.Record = bad.Record[:rapid.IntRange(0, len(bad.Record)-1).Draw(t, "cut")]
		case 2:
			bad.Version.Count += rapid.Uint64Range(1, 100).Draw(t, "count")
		case 3:
			bad.Base++
		case 4:
			bad.Record = rapid.SliceOf(rapid.Byte()).Draw(t, "garbage")
		}
		r := New(Config{Self: s.peers[1], Epoch: 1}, []Entry{before})
		r.SetMembers(topology.View{Members: s.peers})
		out := r.Receive(s.peers[0], &Delta{[]DeltaItem{bad}})
		if got, _ := r.Entry(s.peers[0]); got.version != before.version {
			if got.version != after.version {
				t.Fatalf("version %v is in force", got.version)
			}
			return // what was changed made no difference
		}
		if len(out.Changed) > 0 {
			t.Errorf("%v changed", out.Changed)
		}
		for _, e := range out.Send {
			if w, is := e.Message.(*Want); is && slices.Equal(w.Origins, []clustermesh.Origin{s.peers[0]}) {
				return
			}
		}
		t.Errorf("the whole record is not asked for: %v", out.Send)
	})
}

// TestDeltaOfAnother: of an origin of which nothing is held, an exchange is opened, once a tick.
// Where the seal that is held is another one, so that what differs leads to one that proves
// nothing, the whole record is asked for and no peer is blamed.
func TestDeltaOfAnother(t *testing.T) {
	origins := []clustermesh.Origin{simOrigin(0), simOrigin(3)}
	before := mustEntry(t, clustermesh.Record{Origin: origins[0], Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}, Content: pods(origins[0], 10, 1)})
	after := mustEntry(t, clustermesh.Record{Origin: origins[0], Stamp: clustermesh.Stamp{Epoch: 1, Version: 2}, Content: pods(origins[0], 10, 2)})
	before, after = before.Sealed(sealOf(before)), after.Sealed(sealOf(after))
	item, _ := change{now: after, before: before}.delta()
	news := &Delta{[]DeltaItem{item, item}}
	admit := func(_ Peer, e Entry) (clustermesh.Record, clustermesh.Problem, bool) {
		return e.Record, clustermesh.Problem{}, bytes.Equal(e.seal, sealOf(e)) || bytes.Equal(e.seal, bytes.ToUpper(sealOf(e)))
	}
	sent := func(out Output) (kinds []Kind) {
		for _, e := range out.Send {
			kinds = append(kinds, e.Message.Kind())
		}
		return kinds
	}

	r := New(Config{Self: origins[1], Epoch: 1}, nil)
	r.SetMembers(topology.View{Members: origins})
	r.synced = true
	for range 2 {
		if got := sent(r.Receive(origins[0], news)); !slices.Equal(got, []Kind{KindDigest}) {
			t.Errorf("of an unknown origin: %v is sent", got)
		}
		if got := sent(r.Receive(origins[0], news)); got != nil {
			t.Errorf("again in the same tick: %v is sent", got)
		}
		r.Tick(rand.New(rand.NewPCG(1, 1)))
	}

	other := before.Sealed(bytes.ToUpper(before.seal))
	r = New(Config{Self: origins[1], Epoch: 1, Admit: admit}, []Entry{other})
	r.SetMembers(topology.View{Members: origins})
	out := r.Receive(origins[0], news)
	if got := sent(out); !slices.Equal(got, []Kind{KindWant}) || len(out.Problems) > 0 || len(out.Changed) > 0 {
		t.Errorf("with another seal: %v is sent, problems %v", got, out.Problems)
	}
	if out = r.Receive(origins[0], &Snapshot{Entries: []Entry{after}}); !slices.Equal(out.Changed, origins[:1]) {
		t.Errorf("the whole record: %+v", out)
	}
}

// TestDeltaPassedOn: what came is passed on only if it leads to what is passed on, and is no longer
// than the record: a peer could fill it with steps that copy nothing.
func TestDeltaPassedOn(t *testing.T) {
	o := simOrigin(0)
	version := func(n uint64) Entry {
		e := mustEntry(t, clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: n}, Content: pods(o, 10, int(n))})
		return e.Sealed(sealOf(e))
	}
	before, now, other := version(1), version(2), version(3)
	good, _ := change{now: now, before: before}.delta()
	if got, shorter := (change{now, before, good}).delta(); !shorter || !reflect.DeepEqual(got, good) {
		t.Errorf("what came is not passed on: %v", got)
	}
	wrong, _ := change{now: other, before: before}.delta()
	if got, shorter := (change{now, before, wrong}).delta(); !shorter || !reflect.DeepEqual(got, good) {
		t.Errorf("what leads to another version is passed on: %v", got)
	}
	long := good
	long.Record = slices.Concat(bytes.Repeat([]byte{0, 0, 0}, 1000), good.Record)
	if e, err := long.patch(before, new(int)); err != nil || e.version != now.version {
		t.Fatalf("a long difference leads to %v, %v, so this shows nothing", e.version, err)
	}
	if _, shorter := (change{now, before, long}).delta(); shorter {
		t.Errorf("a difference of %d bytes is passed on", len(long.Record))
	}
}

// TestDeltasConverge: whatever is lost, repeated and reordered, replicas that send differences hold
// the same in the end.
func TestDeltasConverge(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(rt, "nodes")
		var origins []clustermesh.Origin
		for i := range n {
			origins = append(origins, simOrigin(i))
		}
		s := newSim(t, origins, rapid.Uint64().Draw(rt, "seed"))
		s.settle(2)
		s.whole()
		truth := map[clustermesh.Origin]clustermesh.Content{}
		for i, o := range origins {
			truth[o] = pods(o, 3, i)
			s.do(i, s.nodes[i].Publish(truth[o]))
		}
		for step := range rapid.IntRange(0, 60).Draw(rt, "steps") {
			switch i := rapid.IntRange(0, n-1).Draw(rt, "node"); rapid.SampledFrom([]string{"publish", "tick", "lose", "repeat", "deliver", "deliver", "deliver", "older"}).Draw(rt, "step") {
			case "publish":
				truth[origins[i]] = pods(origins[i], rapid.IntRange(0, 5).Draw(rt, "pods"), 1000+step)
				s.do(i, s.nodes[i].Publish(truth[origins[i]]))
			case "tick":
				s.do(i, s.nodes[i].Tick(s.rng))
			case "older":
				s.do(i, s.nodes[i].Connected(origins[(i+1)%n], false))
			case "lose":
				if len(s.flying) > 0 {
					s.deliver(rapid.IntRange(0, len(s.flying)-1).Draw(rt, "lost"), true, false)
				}
			case "repeat":
				if len(s.flying) > 0 {
					s.deliver(rapid.IntRange(0, len(s.flying)-1).Draw(rt, "repeated"), false, true)
				}
			case "deliver":
				if len(s.flying) > 0 {
					s.deliver(rapid.IntRange(0, len(s.flying)-1).Draw(rt, "delivered"), false, false)
				}
			}
		}
		s.settle(6 * auditTicks)
		s.sameEverywhere(truth)
	})
}

// TestDeflated: a large answer is deflated for those that understand it, and bounded when it is
// inflated.
func TestDeflated(t *testing.T) {
	e := mustEntry(t, clustermesh.Record{Origin: simOrigin(0), Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}, Content: pods(simOrigin(0), 200, 1)})
	plain, err := Encode(&Snapshot{Entries: []Entry{e}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Encode(&Deflated{&Snapshot{Entries: []Entry{e}}})
	if err != nil || len(b) > len(plain)/2 {
		t.Errorf("%d bytes of %d, %v", len(b), len(plain), err)
	}
	m, err := Decode(b)
	if got, is := m.(*Snapshot); err != nil || !is || len(got.Entries) != 1 || got.Entries[0].version != e.version {
		t.Errorf("%+v, %v", m, err)
	}
	twice, err := appendDeflated(nil, &Deflated{&Snapshot{Entries: []Entry{e}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(twice); err == nil {
		t.Error("deflated twice, and decoded")
	}
	// What inflates too much is sent as it is, and not taken from others.
	large := &Want{slices.Repeat([]clustermesh.Origin{simOrigin(0)}, 10_000)}
	if plain, err = Encode(large); err != nil {
		t.Fatal(err)
	}
	if b, err := Encode(&Deflated{large}); err != nil || !bytes.Equal(b, plain) {
		t.Errorf("%d bytes are sent as %d, %v", len(plain), len(b), err)
	}
	var small bytes.Buffer
	w, err := flate.NewWriter(&small, flate.BestCompression)
	if _, err2 := w.Write(plain); err != nil || err2 != nil || w.Close() != nil {
		t.Fatal(err, err2)
	}
	bomb, err := appendBody(nil, KindDeflated, deflatedBody{small.Bytes()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(bomb); err == nil || !strings.Contains(err.Error(), "become more than") {
		t.Errorf("%d bytes become %d: %v", len(bomb), len(plain), err)
	}
}
