package observe

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// probeTook is how long a probe that finds nothing takes.
const probeTook = 700 * time.Millisecond

// where members of these tests listen.
var where = netip.MustParseAddrPort("192.0.2.1:7946")

func node(cluster, name string) clustermesh.Origin {
	return clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(name)}
}

// watch is a contacts of one node, with a clock of its own.
type watch struct {
	*Contacts
	t       *testing.T
	now     time.Time
	rng     *rand.Rand
	records clustermesh.ByOrigin[clustermesh.Record]
	witness Witness
}

func newWatch(t *testing.T, others ...clustermesh.Origin) *watch {
	w := &watch{
		Contacts: NewContacts(node("a", "n1")), t: t, now: time.Unix(1000, 0), rng: rand.New(rand.NewPCG(1, 1)),
		records: clustermesh.ByOrigin[clustermesh.Record]{},
	}
	for _, o := range others {
		w.records = w.records.With(o, clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 5}})
	}
	return w
}

// probe lets time pass to the next probe of a node, which finds v.
func (w *watch) probe(o clustermesh.Origin, v Verdict) {
	w.t.Helper()
	for range 100 {
		for _, due := range w.Due(w.records, w.now) {
			began := w.now
			if due != o {
				w.Probed(due, Blind, began, w.now, w.rng)
				continue
			}
			w.now = w.now.Add(probeTook)
			w.Probed(o, v, began, w.now, w.rng)
			return
		}
		w.now = w.now.Add(100 * time.Millisecond)
	}
	w.t.Fatalf("%s is never probed", o)
}

// hear is a member whose daemon has proven that it is there.
func (w *watch) hear(m member.ID) {
	w.Join(m, where, w.now)
	w.Met(m, w.now)
}

func (w *watch) want(o clustermesh.Origin, want clustermesh.Contact, claimed bool) {
	w.t.Helper()
	w.witness.Update(w.Contacts, w.records, w.now)
	_, isClaimed := w.witness.claims[o]
	if got := w.node(o).state(); got != want || isClaimed != claimed {
		w.t.Fatalf("contact %s, claimed %v; want %s, %v", got, isClaimed, want, claimed)
	}
}

func TestThreeDeaths(t *testing.T) {
	n2, n3 := node("a", "n2"), node("a", "n3")
	w := newWatch(t, n2, n3)
	w.hear(member.ID{Origin: n2, Boot: 5})
	w.hear(member.ID{Origin: n3, Boot: 5})
	w.want(n2, clustermesh.Alive, false)

	w.Leave(member.ID{Origin: n2, Boot: 5}, w.now)
	w.want(n2, clustermesh.Held, false)
	w.probe(n2, Answered)
	w.want(n2, clustermesh.Quiet, false)
	w.probe(n2, Silent)
	w.want(n2, clustermesh.Held, false) // once is not enough
	w.probe(n2, Blind)
	w.want(n2, clustermesh.Held, false) // and this is no evidence
	w.probe(n2, Silent)
	w.probe(n2, Silent)
	w.want(n2, clustermesh.Held, false) // it had answered: no hurry
	w.probe(n2, Silent)
	w.want(n2, clustermesh.Silent, true)
	w.probe(n2, Answered)
	w.want(n2, clustermesh.Quiet, true) // it may be booting
	w.now = w.now.Add(holdDown)
	w.probe(n2, Answered)
	w.want(n2, clustermesh.Quiet, false)
	w.hear(member.ID{Origin: n2, Boot: 5})
	w.Leave(member.ID{Origin: n2, Boot: 4}, w.now) // late news of an earlier life
	w.want(n2, clustermesh.Alive, false)
}

// TestReturn: a machine that boots is back when its new life has published, not when it is heard: what
// its old life published has no pods behind it yet.
func TestReturn(t *testing.T) {
	n2, n3 := node("a", "n2"), node("a", "n3")
	w := newWatch(t, n2, n3)
	w.hear(member.ID{Origin: n3, Boot: 5})
	w.probe(n2, Silent)
	w.probe(n2, Silent)
	w.want(n2, clustermesh.Silent, true)
	w.hear(member.ID{Origin: n2, Boot: 6})
	w.want(n2, clustermesh.Alive, true)
	if got := w.All(w.records).Get(n2); got != clustermesh.Quiet {
		t.Errorf("contact with the life that wrote the record is %s", got)
	}
	w.records = w.records.With(n2, clustermesh.Record{Origin: n2, Stamp: clustermesh.Stamp{Epoch: 6}})
	w.want(n2, clustermesh.Alive, false)
	if got := w.All(w.records).Get(n2); got != clustermesh.Alive {
		t.Errorf("contact after the new life has published is %s", got)
	}
}

// TestAloneMakesNoClaims: a node that hears no other may be the one that is cut off.
func TestAloneMakesNoClaims(t *testing.T) {
	n2, n3 := node("a", "n2"), node("a", "n3")
	w := newWatch(t, n2, n3)
	w.hear(member.ID{Origin: n3, Boot: 5})
	w.probe(n2, Silent)
	w.probe(n2, Silent)
	w.want(n2, clustermesh.Silent, true)
	w.Leave(member.ID{Origin: n3, Boot: 5}, w.now)
	w.probe(n3, Silent)
	w.probe(n3, Silent)
	w.want(n3, clustermesh.Silent, false) // alone now: no new claim
	w.want(n2, clustermesh.Silent, true)  // the earlier one stays
	w.hear(member.ID{Origin: n3, Boot: 5})
	w.want(n2, clustermesh.Silent, true)
	w.want(n3, clustermesh.Alive, false)
}

// TestClaimIsOfOneLife: a later life that others have heard ends the claim; its own silence is
// looked at again.
func TestClaimIsOfOneLife(t *testing.T) {
	n2, n3 := node("a", "n2"), node("a", "n3")
	w := newWatch(t, n2, n3)
	w.hear(member.ID{Origin: n3, Boot: 5})
	w.witness.Restore([]clustermesh.Silence{{Origin: n2, Epoch: 5}})
	w.Restore(w.witness.Silences())
	w.want(n2, clustermesh.Silent, true) // from disk: the restart of a witness lifts no claim
	w.records = w.records.With(n2, clustermesh.Record{Origin: n2, Stamp: clustermesh.Stamp{Epoch: 6}})
	w.want(n2, clustermesh.Held, false)
	w.probe(n2, Silent)
	w.probe(n2, Silent)
	w.want(n2, clustermesh.Silent, true)
	if got := w.witness.Silences(); !reflect.DeepEqual(got, []clustermesh.Silence{{Origin: n2, Epoch: 6}}) {
		t.Errorf("claims %v", got)
	}
}

// TestStalledStreamIsProbedEarly: by the time memberlist has decided, the probes have too.
func TestStalledStreamIsProbedEarly(t *testing.T) {
	n2, n3 := node("a", "n2"), node("a", "n3")
	w := newWatch(t, n2, n3)
	w.hear(member.ID{Origin: n2, Boot: 5})
	w.hear(member.ID{Origin: n3, Boot: 5})
	w.Stream(member.ID{Origin: n2, Boot: 5}, +1, w.now)
	if due := w.Due(w.records, w.now.Add(stalled/2)); len(due) != 0 {
		t.Fatalf("probes %v though all is well", due)
	}
	w.now = w.now.Add(2 * stalled)
	w.probe(n2, Silent)
	w.probe(n2, Silent)
	w.want(n2, clustermesh.Alive, false) // memberlist alone decides who is alive
	w.Leave(member.ID{Origin: n2, Boot: 5}, w.now)
	w.want(n2, clustermesh.Silent, true)

	w.hear(member.ID{Origin: n2, Boot: 5})
	w.want(n2, clustermesh.Alive, false)
	w.Stream(member.ID{Origin: n2, Boot: 5}, -1, w.now) // a daemon that stops closes its stream
	w.probe(n2, Answered)
	w.Leave(member.ID{Origin: n2, Boot: 5}, w.now)
	w.want(n2, clustermesh.Quiet, false)
}

func TestProbeThatWasOvertaken(t *testing.T) {
	n2 := node("a", "n2")
	w := newWatch(t, n2)
	began := w.now
	w.Frame(member.ID{Origin: n2, Boot: 5}, began.Add(time.Millisecond))
	for range 3 {
		w.Probed(n2, Silent, began, began.Add(time.Second), w.rng)
	}
	if got := w.node(n2).state(); got != clustermesh.Held {
		t.Errorf("contact %s though the node was heard after the probe began", got)
	}
}

// TestForget: of a node without a record nothing is kept, unless its daemon is there.
func TestForget(t *testing.T) {
	n2, n3, n4 := node("a", "n2"), node("a", "n3"), node("a", "n4")
	w := newWatch(t, n2)
	w.hear(member.ID{Origin: n2, Boot: 5})
	w.hear(member.ID{Origin: n3, Boot: 5})
	w.Stream(member.ID{Origin: n4, Boot: 5}, +1, w.now)
	w.Forget(w.records, w.now)
	if len(w.nodes) != 3 {
		t.Errorf("%d nodes are left of one that is held, one that is heard and one with a stream", len(w.nodes))
	}
	w.records = w.records.Without(n2)
	w.Leave(member.ID{Origin: n2, Boot: 5}, w.now)
	w.Leave(member.ID{Origin: n3, Boot: 5}, w.now)
	w.Stream(member.ID{Origin: n4, Boot: 5}, -1, w.now)
	w.now = w.now.Add(metAge)
	w.Forget(w.records, w.now)
	if len(w.nodes) > 0 || w.All(w.records).Len() != 1 {
		t.Errorf("left: %v", w.All(w.records))
	}
}

// TestForgetsNoProof: a daemon that proved itself just before it became a member is alive at once,
// whatever is tidied up in between.
func TestForgetsNoProof(t *testing.T) {
	id := member.ID{Origin: node("a", "n2"), Boot: 5}
	w := newWatch(t)
	w.Met(id, w.now)
	w.now = w.now.Add(metAge / 2)
	w.Forget(w.records, w.now)
	w.Join(id, where, w.now)
	if got := w.Contact(id.Origin); got != clustermesh.Alive {
		t.Errorf("contact %s", got)
	}
	w.Leave(id, w.now)
	w.now = w.now.Add(metAge)
	if w.Forget(w.records, w.now); len(w.nodes) > 0 {
		t.Errorf("not forgotten: %v", w.nodes)
	}
}

func TestProbeAddrs(t *testing.T) {
	rec := clustermesh.Record{Content: clustermesh.Content{Node: &clustermesh.Node{
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")},
		Inside:    netip.MustParseAddr("10.1.0.1"), GossipPort: 7946,
	}}}
	got := fmt.Sprint(ProbeAddrs(rec, netip.MustParseAddrPort("192.0.2.1:7946")))
	if want := "[192.0.2.1:7946 [2001:db8::1]:7946 10.1.0.1:7946]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for n := range 5000 {
		rec.Content.Node.Addresses = append(rec.Content.Node.Addresses, netip.AddrFrom4([4]byte{198, 51, byte(n >> 8), byte(n)}))
	}
	if got := ProbeAddrs(rec, netip.MustParseAddrPort("192.0.2.1:7946")); len(got) > maxAddrs+2 || got[0] != where {
		t.Errorf("of 5002 addresses: %d, first %s", len(got), got[0])
	}
	if got := ProbeAddrs(clustermesh.Record{}, netip.AddrPort{}); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// TestOneSided: a member that opens no stream may not have heard of this node.
func TestOneSided(t *testing.T) {
	w := newWatch(t)
	o := node("b", "n1")
	want := func(when string, want bool) {
		t.Helper()
		if got := w.OneSided(o, w.now); got != want {
			t.Errorf("%s: %v", when, got)
		}
	}
	want("unknown", false)
	w.Join(member.ID{Origin: o, Boot: 5}, where, w.now)
	want("a new member", false)
	w.now = w.now.Add(2 * oneSidedAfter)
	want("later, without a stream", true)
	w.Stream(member.ID{Origin: o, Boot: 5}, +1, w.now)
	want("with a stream", false)
	w.Stream(member.ID{Origin: o, Boot: 5}, -1, w.now)
	w.Join(member.ID{Origin: o, Boot: 6}, where, w.now)
	want("restarted", false)
	w.now = w.now.Add(2 * oneSidedAfter)
	want("restarted a while ago", true)
	w.Leave(member.ID{Origin: o, Boot: 5}, w.now)
	w.Leave(member.ID{Origin: o, Boot: 6}, w.now)
	want("gone", false)
}

// TestLongestWaitComesFirst: there is more to ask and to probe than at once. Nodes come in the
// order in which they became due, and then by name, so that each has its turn, and the same events
// lead to the same questions.
func TestLongestWaitComesFirst(t *testing.T) {
	const most = maxAsking + maxProbing
	known := clustermesh.ByOrigin[clustermesh.Record]{}
	c, now := NewContacts(node("a", "n1")), time.Unix(1000, 0)
	var want []clustermesh.Origin
	for i := range most + 10 {
		o := node("b", fmt.Sprintf("n%03d", most+10-i)) // in the order of names, the last comes first
		known = known.With(o, clustermesh.Record{Origin: o})
		c.Join(member.ID{Origin: o, Boot: 7}, where, now.Add(time.Duration(i)*time.Millisecond))
		want = append(want, o)
	}
	later := now.Add(time.Minute)
	if got := c.Unmet(later); !reflect.DeepEqual(got, want[:maxAsking]) {
		t.Errorf("asked: %v", got)
	}
	if got := c.Due(known, later); !reflect.DeepEqual(got, want[:maxProbing]) {
		t.Errorf("probed: %v", got)
	}
}
