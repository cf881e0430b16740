package replica

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// flooded is a replica that holds records of nodes, and a peer that is believed and floods it.
func flooded(t *testing.T, nodes int) (r *Replica, peer Peer, held []Entry) {
	t.Helper()
	var all []Peer
	for i := range nodes {
		o := simOrigin(i + 1)
		held = append(held, mustEntry(t, clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: 7}, Content: pods(o, 10, i)}))
		all = append(all, o)
	}
	r = New(Config{Self: simOrigin(0), Epoch: 1}, held)
	r.SetMembers(topology.View{Members: all})
	r.synced = true
	peer = all[0]
	r.Connected(peer, true)
	r.Receive(peer, &Hello{Speaks: SpeaksHints, Sum: r.root()})
	r.Tick(rand.New(rand.NewPCG(1, 1)))
	return r, peer, held
}

// bytesOf returns how many bytes are sent.
func bytesOf(t *testing.T, out Output) (n int) {
	t.Helper()
	for _, e := range out.Send {
		b, err := Encode(e.Message)
		if err != nil {
			t.Fatal(err)
		}
		n += len(b)
	}
	return n
}

// TestAskedAgain: who asks for all records again and again gets each once a second, however it asks;
// and once more on another stream, because those that were in transit are lost.
func TestAskedAgain(t *testing.T) {
	r, peer, held := flooded(t, 100)
	var want Want
	lacks := &Listing{}
	for _, e := range held {
		want.Origins = append(want.Origins, e.Record.Origin)
	}
	for c := range r.digests {
		lacks.Of = append(lacks.Of, ClusterListing{Cluster: c, Buckets: 1})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	once := bytesOf(t, r.Receive(peer, &want))
	if once == 0 {
		t.Fatal("it is not answered at all")
	}
	for name, again := range map[string]func() Output{
		"wants":           func() Output { return r.Receive(peer, &want) },
		"listings":        func() Output { return r.Receive(peer, lacks) },
		"other questions": func() Output { return r.Receive(peer, &Want{want.Origins[:50]}) },
	} {
		r.Tick(rng)
		r.Receive(peer, &want)
		for range 100 {
			if n := bytesOf(t, again()); n > 0 {
				t.Fatalf("%s: %d bytes again", name, n)
			}
		}
	}
	r.Tick(rng)
	if n := bytesOf(t, r.Receive(peer, &want)); n != once {
		t.Errorf("a second later, it gets %d bytes, want %d", n, once)
	}
	total := 0
	for range 10 {
		r.Connected(peer, true)
		r.Receive(peer, &Hello{Speaks: SpeaksHints, Sum: r.root()})
		total += bytesOf(t, r.Receive(peer, &want))
	}
	if total != once {
		t.Errorf("on ten other streams, it gets %d bytes, want %d", total, once)
	}
}

// TestQuestionsWithoutEnd: exchanges that never agree are answered some times a second.
func TestQuestionsWithoutEnd(t *testing.T) {
	r, peer, held := flooded(t, 100)
	wrong := &Buckets{}
	for c := range r.digests {
		wrong.Of = append(wrong.Of, ClusterBuckets{Cluster: c, Sums: make([]byte, buckets*short)})
	}
	for _, question := range []Message{&Root{}, &Digest{}, &Sums{}, wrong, &Vector{}} {
		r.Tick(rand.New(rand.NewPCG(1, 1)))
		answers := 0
		for range 10 * maxAnswers {
			answers += len(r.Receive(peer, question).Send)
		}
		if answers > maxAnswers || answers == 0 && question.Kind() != KindVector {
			t.Errorf("kind %d: %d answers", question.Kind(), answers)
		}
	}
	r.synced = false
	for _, e := range held[1:3] { // as many as may be open
		r.asking.since[e.Record.Origin] = r.ticks
	}
	for range 10 * maxAnswers {
		r.Receive(peer, &Hello{Speaks: SpeaksHints, Sum: [16]byte{1}})
	}
	if n := len(r.asking.waiting); n > maxAnswers {
		t.Errorf("%d are waited for", n)
	}
}

// TestInventedOffersOfNode: of what a believed peer invents, a bounded number is asked for and remembered.
// What exists is asked for all the same.
func TestInventedOffersOfNode(t *testing.T) {
	r, peer, held := flooded(t, 2)
	for batch := range 20 {
		m := &Announce{}
		for i := range 10_000 {
			o := clustermesh.Origin{Cluster: "c1", Node: clustermesh.NodeName(fmt.Sprintf("x%d", batch*10_000+i))}
			m.Offers = append(m.Offers, Offer{Origin: o, Version: Version{Epoch: 1, Count: 1}})
		}
		r.Receive(peer, m)
	}
	if len(r.asked) > maxNewAsks {
		t.Errorf("%d are asked for", len(r.asked))
	}
	of := held[1].Record.Origin
	if news := (Offer{Origin: of, Version: Version{Epoch: 1, Count: 8}}); !asked(r.Receive(peer, &Announce{Offers: []Offer{news}}), peer) {
		t.Error("what exists is not asked for")
	}
}

// TestFalseOffersOfNode: a believed peer offers a version that does not exist, or one that it does not
// send, before and after another peer offers what is true. That one is asked after two pulses, not
// with the next tick; and a newcomer waits for the tick.
func TestFalseOffersOfNode(t *testing.T) {
	for _, synced := range []bool{true, false} {
		r, peer, held := flooded(t, 3)
		r.synced = synced
		honest, of := held[1].Record.Origin, held[2].Record.Origin
		offers := func(count uint64) *Announce {
			return &Announce{Offers: []Offer{{Origin: of, Version: Version{Epoch: 1, Count: count}}}}
		}
		for _, lie := range []uint64{8, 1000} {
			r.Tick(rand.New(rand.NewPCG(1, 1)))
			r.Receive(peer, offers(lie))
			if asked(r.Receive(honest, offers(8)), honest) {
				t.Fatal("it is asked at once, so this shows nothing")
			}
			if !r.Waits() {
				t.Error("no pulse is wanted")
			}
			asks := 0
			for range 5 {
				r.Receive(peer, offers(lie))
				r.Receive(peer, &Snapshot{Entries: held[2:]}) // that it has no more
				if asked(r.Pulse(), honest) {
					asks++
				}
			}
			if asks != map[bool]int{true: 1, false: 0}[synced] {
				t.Errorf("synced %v, a lie of version %d: the other peer is asked %d times", synced, lie, asks)
			}
		}
	}
}

// TestWrongDeltaOften: one message said 200,000 times in 20 MB what differs from a record, with a
// wrong seal, and took a daemon 18 s. Now it is tried once in a message, and after some that are wrong, only
// the whole record is asked for. What another peer sends counts at once.
func TestWrongDeltaOften(t *testing.T) {
	r, peer, held := flooded(t, 3)
	old := held[2]
	next := mustEntry(t, clustermesh.Record{Origin: old.Record.Origin, Stamp: clustermesh.Stamp{Epoch: 1, Version: 8}, Content: pods(old.Record.Origin, 10, 99)})
	tried := 0
	r.admit = func(_ Peer, e Entry) (clustermesh.Record, clustermesh.Problem, bool) {
		if e.version != next.version {
			return e.Record, clustermesh.Problem{}, true
		}
		tried++
		return e.Record, clustermesh.Problem{}, len(e.seal) > 0
	}
	wrong, _ := change{now: next, before: old}.delta()
	for range 1000 {
		many := &Delta{}
		for range 100 {
			many.Items = append(many.Items, wrong)
		}
		r.Receive(peer, many)
	}
	if tried == 0 || tried > maxWrong {
		t.Errorf("%d were tried", tried)
	}
	garbage := wrong
	garbage.Record = []byte{0, 0, 2}
	r.Tick(rand.New(rand.NewPCG(1, 1)))
	for range 10 * maxWrong {
		r.Receive(peer, &Delta{Items: []DeltaItem{garbage}})
	}
	if n := r.servedOf(peer).wrong; n != maxWrong {
		t.Errorf("%d that lead nowhere were tried", n)
	}
	right, _ := change{now: next.Sealed([]byte("seal")), before: old}.delta()
	r.Receive(held[1].Record.Origin, &Delta{Items: []DeltaItem{right}})
	if got := r.Records().Get(old.Record.Origin).Stamp.Version; got != 8 {
		t.Errorf("version %d is in force", got)
	}
}

// TestParts: the parts of a message say together what it says, and none is long.
func TestParts(t *testing.T) {
	_, _, held := flooded(t, 3*partSize+5)
	whole, d := &Snapshot{Entries: held, Rejected: []Rejected{{Origin: simOrigin(5)}}}, &Delta{}
	for i := range held {
		d.Items = append(d.Items, DeltaItem{Of: uint64(i)})
	}
	var entries []Entry
	var rejected, items int
	for _, m := range append(Parts(whole), Parts(d)...) {
		switch m := m.(type) {
		case *Snapshot:
			entries, rejected = append(entries, m.Entries...), rejected+len(m.Rejected)
			if len(m.Entries) > partSize {
				t.Errorf("a part has %d records", len(m.Entries))
			}
		case *Delta:
			if len(m.Items) > partSize || m.Items[0].Of != uint64(items) {
				t.Errorf("a part has %d items, and begins with %d after %d", len(m.Items), m.Items[0].Of, items)
			}
			items += len(m.Items)
		}
	}
	if len(entries) != len(held) || rejected != 1 || items != len(held) {
		t.Errorf("%d entries, %d rejected, %d items", len(entries), rejected, items)
	}
	for i := range entries {
		if entries[i].version != held[i].version {
			t.Fatalf("entry %d is another one", i)
		}
	}
	if m := Parts(nil); len(m) != 1 || m[0] != nil {
		t.Errorf("a heartbeat has the parts %v", m)
	}
}
