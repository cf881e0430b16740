package gossip

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"reflect"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
)

// watch is a contacts of one node, with a clock of its own.
type watch struct {
	*contacts
	t       *testing.T
	now     time.Time
	rng     *rand.Rand
	records map[clustermesh.Origin]clustermesh.Record
	witness witness
}

func newWatch(t *testing.T, others ...clustermesh.Origin) *watch {
	w := &watch{
		contacts: newContacts(node("a", "n1")), t: t, now: time.Unix(1000, 0), rng: rand.New(rand.NewPCG(1, 1)),
		records: map[clustermesh.Origin]clustermesh.Record{},
	}
	for _, o := range others {
		w.records[o] = clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 5}}
	}
	return w
}

// probe lets time pass to the next probe of a node, which finds v.
func (w *watch) probe(o clustermesh.Origin, v verdict) {
	w.t.Helper()
	for range 100 {
		for _, due := range w.due(w.records, w.now) {
			began := w.now
			if due != o {
				w.probed(due, blind, began, w.now, w.rng)
				continue
			}
			w.now = w.now.Add(probeTimeout)
			w.probed(o, v, began, w.now, w.rng)
			return
		}
		w.now = w.now.Add(100 * time.Millisecond)
	}
	w.t.Fatalf("%s is never probed", o)
}

func (w *watch) want(o clustermesh.Origin, want clustermesh.Contact, claimed bool) {
	w.t.Helper()
	w.witness.update(w.contacts, w.records, w.now)
	_, isClaimed := w.witness.claims[o]
	if got := w.node(o).state(); got != want || isClaimed != claimed {
		w.t.Fatalf("contact %s, claimed %v; want %s, %v", got, isClaimed, want, claimed)
	}
}

func TestThreeDeaths(t *testing.T) {
	n2, n3 := node("a", "n2"), node("a", "n3")
	w := newWatch(t, n2, n3)
	w.join(member{n2, 5}, testAddr(), w.now)
	w.join(member{n3, 5}, testAddr(), w.now)
	w.want(n2, clustermesh.Alive, false)

	w.leave(member{n2, 5}, w.now)
	w.want(n2, clustermesh.Held, false)
	w.probe(n2, answered)
	w.want(n2, clustermesh.Quiet, false)
	w.probe(n2, silent)
	w.want(n2, clustermesh.Held, false) // once is not enough
	w.probe(n2, blind)
	w.want(n2, clustermesh.Held, false) // and this is no evidence
	w.probe(n2, silent)
	w.probe(n2, silent)
	w.want(n2, clustermesh.Held, false) // it had answered: no hurry
	w.probe(n2, silent)
	w.want(n2, clustermesh.Silent, true)
	w.probe(n2, answered)
	w.want(n2, clustermesh.Quiet, true) // it may be booting
	w.now = w.now.Add(holdDown)
	w.probe(n2, answered)
	w.want(n2, clustermesh.Quiet, false)
	w.join(member{n2, 5}, testAddr(), w.now)
	w.leave(member{n2, 4}, w.now) // late news of an earlier life
	w.want(n2, clustermesh.Alive, false)
}

// TestReturn: a machine that boots is back when its new life has published, not when it is heard: what
// its old life published has no pods behind it yet.
func TestReturn(t *testing.T) {
	n2, n3 := node("a", "n2"), node("a", "n3")
	w := newWatch(t, n2, n3)
	w.join(member{n3, 5}, testAddr(), w.now)
	w.probe(n2, silent)
	w.probe(n2, silent)
	w.want(n2, clustermesh.Silent, true)
	w.join(member{n2, 6}, testAddr(), w.now)
	w.want(n2, clustermesh.Alive, true)
	if got := w.all(w.records)[n2]; got != clustermesh.Quiet {
		t.Errorf("contact with the life that wrote the record is %s", got)
	}
	w.records[n2] = clustermesh.Record{Origin: n2, Stamp: clustermesh.Stamp{Epoch: 6}}
	w.want(n2, clustermesh.Alive, false)
	if got := w.all(w.records)[n2]; got != clustermesh.Alive {
		t.Errorf("contact after the new life has published is %s", got)
	}
}

// TestAloneMakesNoClaims: a node that hears nobody may be the one that is cut off.
func TestAloneMakesNoClaims(t *testing.T) {
	n2, n3 := node("a", "n2"), node("a", "n3")
	w := newWatch(t, n2, n3)
	w.join(member{n3, 5}, testAddr(), w.now)
	w.probe(n2, silent)
	w.probe(n2, silent)
	w.want(n2, clustermesh.Silent, true)
	w.leave(member{n3, 5}, w.now)
	w.probe(n3, silent)
	w.probe(n3, silent)
	w.want(n3, clustermesh.Silent, false) // alone now: no new claim
	w.want(n2, clustermesh.Silent, true)  // the earlier one stays
	w.join(member{n3, 5}, testAddr(), w.now)
	w.want(n2, clustermesh.Silent, true)
	w.want(n3, clustermesh.Alive, false)
}

// TestClaimIsOfOneLife: a later life that others have heard ends the claim; its own silence is looked at anew.
func TestClaimIsOfOneLife(t *testing.T) {
	n2, n3 := node("a", "n2"), node("a", "n3")
	w := newWatch(t, n2, n3)
	w.join(member{n3, 5}, testAddr(), w.now)
	w.witness.restore([]clustermesh.Silence{{Origin: n2, Epoch: 5}})
	w.restore(w.witness.claims)
	w.want(n2, clustermesh.Silent, true) // from disk: the restart of a witness lifts no claim
	w.records[n2] = clustermesh.Record{Origin: n2, Stamp: clustermesh.Stamp{Epoch: 6}}
	w.want(n2, clustermesh.Held, false)
	w.probe(n2, silent)
	w.probe(n2, silent)
	w.want(n2, clustermesh.Silent, true)
	if got := w.witness.silences(); !reflect.DeepEqual(got, []clustermesh.Silence{{Origin: n2, Epoch: 6}}) {
		t.Errorf("claims %v", got)
	}
}

// TestStalledStreamIsProbedEarly: by the time memberlist has decided, the probes have too.
func TestStalledStreamIsProbedEarly(t *testing.T) {
	n2, n3 := node("a", "n2"), node("a", "n3")
	w := newWatch(t, n2, n3)
	w.join(member{n2, 5}, testAddr(), w.now)
	w.join(member{n3, 5}, testAddr(), w.now)
	w.stream(n2, +1, w.now)
	if due := w.due(w.records, w.now.Add(stalled/2)); len(due) != 0 {
		t.Fatalf("probes %v though all is well", due)
	}
	w.now = w.now.Add(2 * stalled)
	w.probe(n2, silent)
	w.probe(n2, silent)
	w.want(n2, clustermesh.Alive, false) // memberlist alone decides who is alive
	w.leave(member{n2, 5}, w.now)
	w.want(n2, clustermesh.Silent, true)

	w.join(member{n2, 5}, testAddr(), w.now)
	w.want(n2, clustermesh.Alive, false)
	w.stream(n2, -1, w.now) // a daemon that stops closes its stream
	w.probe(n2, answered)
	w.leave(member{n2, 5}, w.now)
	w.want(n2, clustermesh.Quiet, false)
}

func TestProbeThatWasOvertaken(t *testing.T) {
	n2 := node("a", "n2")
	w := newWatch(t, n2)
	began := w.now
	w.frame(n2, began.Add(time.Millisecond))
	for range 3 {
		w.probed(n2, silent, began, began.Add(time.Second), w.rng)
	}
	if got := w.node(n2).state(); got != clustermesh.Held {
		t.Errorf("contact %s though the node was heard after the probe began", got)
	}
}

// TestForget: of a node without a record nothing is kept, unless its daemon is there.
func TestForget(t *testing.T) {
	n2, n3, n4 := node("a", "n2"), node("a", "n3"), node("a", "n4")
	w := newWatch(t, n2)
	w.join(member{n2, 5}, testAddr(), w.now)
	w.join(member{n3, 5}, testAddr(), w.now)
	w.stream(n4, +1, w.now)
	w.forget(w.records)
	if len(w.nodes) != 3 {
		t.Errorf("%d nodes are left of one that is held, one that is heard and one with a stream", len(w.nodes))
	}
	delete(w.records, n2)
	w.leave(member{n2, 5}, w.now)
	w.leave(member{n3, 5}, w.now)
	w.stream(n4, -1, w.now)
	w.forget(w.records)
	if len(w.nodes) > 0 || len(w.all(w.records)) != 1 {
		t.Errorf("left: %v", w.all(w.records))
	}
}

func TestJudge(t *testing.T) {
	dial := func(errno error) error { return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errno)} }
	cases := []struct {
		err  error
		want verdict
	}{
		{nil, answered},
		{dial(syscall.ECONNREFUSED), answered},
		{dial(syscall.ECONNRESET), answered},
		{dial(syscall.ETIMEDOUT), silent},
		{dial(syscall.EHOSTUNREACH), silent},
		{dial(syscall.ENETUNREACH), silent},
		{fmt.Errorf("dial: %w", context.DeadlineExceeded), silent},
		{dial(os.ErrDeadlineExceeded), silent},
		{dial(syscall.EMFILE), blind},
		{dial(syscall.EPERM), blind},
		{dial(syscall.ENETDOWN), blind},
		{dial(syscall.ENOKEY), blind},
		{context.Canceled, blind},
	}
	for _, c := range cases {
		if got := judge(c.err); got != c.want {
			t.Errorf("judge(%v) = %d, want %d", c.err, got, c.want)
		}
	}
}

func TestTCPProbe(t *testing.T) {
	a, b := testAddr(), testAddr()
	l, err := net.Listen("tcp", a.String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := tcpProbe(t.Context(), []netip.AddrPort{a}); got != answered {
		t.Errorf("a listener: %d", got)
	}
	if got := tcpProbe(t.Context(), []netip.AddrPort{b}); got != answered {
		t.Errorf("a machine that refuses: %d", got)
	}
	if got := tcpProbe(t.Context(), nil); got != blind {
		t.Errorf("no address: %d", got)
	}
}

func TestProbeAddrs(t *testing.T) {
	rec := clustermesh.Record{Content: clustermesh.Content{Node: &clustermesh.Node{
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")},
		Inside:    netip.MustParseAddr("10.1.0.1"), GossipPort: 7946,
	}}}
	got := fmt.Sprint(probeAddrs(rec, netip.MustParseAddrPort("192.0.2.1:7946")))
	if want := "[192.0.2.1:7946 [2001:db8::1]:7946 10.1.0.1:7946]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := probeAddrs(clustermesh.Record{}, netip.AddrPort{}); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func TestLeaderEpochGrows(t *testing.T) {
	var l leader
	now := time.UnixMilli(1000)
	l.update(true, now)
	first := l.since
	l.update(false, now)
	l.update(true, now.Add(-time.Hour)) // the clock went back
	if first != 1000 || l.since <= first {
		t.Errorf("epochs %d, %d", first, l.since)
	}
}
