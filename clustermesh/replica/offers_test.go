package replica

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// TestFalseOffers: a doubted peer offers versions that do not exist, of all records and of invented ones,
// again and again. What a believed peer offers is asked for at once all the same, by whichever way, the
// first exchange completes, and what is remembered is bounded.
func TestFalseOffers(t *testing.T) {
	mallory, honest, owner := simOrigin(9), simOrigin(1), simOrigin(2)
	truth := mustEntry(t, clustermesh.Record{Origin: owner, Stamp: clustermesh.Stamp{Epoch: 1, Version: 7}, Content: content(owner, 1)})
	lie := Offer{Origin: owner, Version: Version{Epoch: 1, Count: 1 << 40}}
	vector := func(o ...Offer) *Vector {
		return &Vector{Clusters: []ClusterVector{{Cluster: owner.Cluster, Offers: o}}}
	}
	for how, messages := range map[string][2]Message{
		"announced": {&Announce{Offers: []Offer{lie}}, &Announce{Offers: offersOf([]Entry{truth})}},
		"exchanged": {vector(lie), vector(offersOf([]Entry{truth})...)},
	} {
		r := New(Config{Self: simOrigin(3), Epoch: 1}, nil)
		r.SetMembers(topology.View{Members: []Peer{mallory, honest, owner}})
		rng := rand.New(rand.NewPCG(1, 1))
		for range 3 {
			if !asked(r.Receive(mallory, Doubted(messages[0])), mallory) {
				t.Errorf("%s: mallory is not asked, so this shows nothing", how)
			}
			if !asked(r.Receive(honest, messages[1]), honest) {
				t.Errorf("%s: no peer is asked for what exists", how)
			}
			if asked(r.Receive(mallory, Doubted(messages[0])), mallory) || r.asked[owner].from != honest {
				t.Errorf("%s: what exists is displaced", how)
			}
			r.Tick(rng)
		}
		r.Receive(honest, messages[1])
		r.Receive(mallory, Doubted(messages[0]))
		forged := &Snapshot{Entries: []Entry{mustEntry(t, clustermesh.Record{Origin: owner, Stamp: clustermesh.Stamp{Epoch: 1, Version: 1 << 40}})}}
		r.admit = func(by Peer, e Entry) (clustermesh.Record, clustermesh.Problem, bool) {
			return e.Record, clustermesh.Problem{}, e.version == truth.version
		}
		r.Receive(mallory, Doubted(forged))
		if how == "exchanged" && r.Synced() {
			t.Errorf("%s: what is forged completes the first exchange", how)
		}
		r.Receive(honest, &Snapshot{Entries: []Entry{truth}})
		if r.Records().Get(owner).Stamp.Version != 7 || how == "exchanged" && !waited(r).Synced() {
			t.Errorf("%s: version %d is in force, synced is %v", how, r.Records().Get(owner).Stamp.Version, r.Synced())
		}
		var many []Offer
		for i := range 10 * maxDoubtedAsks {
			many = append(many, Offer{Origin: clustermesh.Origin{Cluster: "c1", Node: clustermesh.NodeName(fmt.Sprintf("x%d", i))}, Version: Version{Epoch: 1}})
		}
		r.Receive(mallory, Doubted(&Announce{Offers: many}))
		if len(r.asked) > maxDoubtedAsks {
			t.Errorf("%s: %d were asked for", how, len(r.asked))
		}
	}
}

// asked reports whether a peer is asked for a record.
func asked(out Output, p Peer) bool {
	return slices.ContainsFunc(out.Send, func(e Envelope) bool { return e.To == p && e.Message.Kind() == KindWant })
}

// TestOffersOfOwnRecord: a doubted peer offers versions of the replica's own record that do not exist. It
// neither writes above them nor calls them another daemon's. A believed peer's offer counts.
func TestOffersOfOwnRecord(t *testing.T) {
	mallory, honest, self := simOrigin(9), simOrigin(1), simOrigin(3)
	r := New(Config{Self: self, Epoch: 5}, nil)
	r.SetMembers(topology.View{Members: []Peer{mallory, honest}})
	r.Publish(content(self, 1))
	before := r.Records().Get(self).Stamp
	offers := []Offer{{Origin: self, Version: Version{Epoch: 1 << 40, Count: 1 << 40}}}
	lies := []Message{&Announce{Offers: offers}, &Vector{Clusters: []ClusterVector{{Cluster: self.Cluster, Offers: offers}}}}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		for _, m := range lies {
			if out := r.Receive(mallory, Doubted(m)); len(out.Problems) > 0 || asked(out, mallory) {
				t.Fatalf("a lie causes %v, %v", out.Problems, out.Send)
			}
		}
		if out := r.Tick(rng); len(out.Problems) > 0 {
			t.Fatal(out.Problems)
		}
	}
	r.Publish(content(self, 2))
	if now := r.Records().Get(self).Stamp; now.Epoch != before.Epoch {
		t.Errorf("a lie moves the epoch from %d to %d", before.Epoch, now.Epoch)
	}
	if r.Receive(honest, lies[0]); r.Records().Get(self).Stamp.Epoch <= 1<<40 {
		t.Error("it does not write above what a believed peer has")
	}
}

// TestOfferThatNeverComes: a believed peer offers what it never sends. Another one that offers the record
// is asked with the next tick.
func TestOfferThatNeverComes(t *testing.T) {
	liar, honest, owner := simOrigin(9), simOrigin(1), simOrigin(2)
	r := New(Config{Self: simOrigin(3), Epoch: 1}, nil)
	r.SetMembers(topology.View{Members: []Peer{liar, honest}})
	r.Receive(liar, &Announce{Offers: []Offer{{Origin: owner, Version: Version{Epoch: 1, Count: 1 << 40}}}})
	if asked(r.Receive(honest, &Announce{Offers: []Offer{{Origin: owner, Version: Version{Epoch: 1, Count: 7}}}}), honest) {
		t.Error("two are asked at once")
	}
	if !asked(r.Tick(rand.New(rand.NewPCG(1, 1))), honest) {
		t.Error("no other peer is asked")
	}
}

// TestQuestionsOfTheDoubted: doubted peers get answers, and together no more than cost little. Others
// always do.
func TestQuestionsOfTheDoubted(t *testing.T) {
	r := New(Config{Self: simOrigin(3), Epoch: 1}, nil)
	r.Publish(content(simOrigin(3), 1))
	r.SetMembers(topology.View{Members: []Peer{simOrigin(1)}})
	answers := 0
	for i := range 1000 {
		p := simOrigin(100 + i/20)
		answers += len(r.Receive(p, Doubted(&Want{[]clustermesh.Origin{simOrigin(3)}})).Send)
	}
	if answers == 0 || answers > maxDoubtedAnswers {
		t.Errorf("%d questions were answered", answers)
	}
	if len(r.Receive(simOrigin(1), &Want{[]clustermesh.Origin{simOrigin(3)}}).Send) == 0 {
		t.Error("a believed peer gets no answer")
	}
	if r.Tick(rand.New(rand.NewPCG(1, 1))); len(r.Receive(simOrigin(100), Doubted(&Want{[]clustermesh.Origin{simOrigin(3)}})).Send) == 0 {
		t.Error("a doubted peer gets no answer after a tick")
	}
}
