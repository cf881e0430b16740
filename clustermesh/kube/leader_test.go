package kube

import (
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/testutil"
)

func TestLeader(t *testing.T) {
	b := newBench(t)
	make := func(c Client, node clustermesh.NodeName) (*Leader, func()) {
		l := NewLeader(LeaderConfig{Client: c, Namespace: b.ns, Node: node, Log: testutil.Logger(t)})
		return l, b.run(l.Run)
	}
	leads := func(l *Leader) func() bool {
		return func() bool { is, _ := l.Leader(); return is }
	}
	one, stopOne := make(b.direct, "n1")
	b.eventually("n1 leads", patient, leads(one))
	_, first := one.Leader()
	cut, _ := make(b.gate.client(t), "n2")
	// After a stall of the whole machine n2 may lead; never both do.
	for end := time.Now().Add(2 * retryPeriod); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		neverBoth(t, one, cut)
	}
	stopOne()
	if is, _ := one.Leader(); is {
		t.Error("leads after its end")
	}
	t.Logf("handed over in %s", b.eventually("n2 leads", patient, leads(cut)))
	_, second := cut.Leader()
	if second <= first {
		t.Errorf("terms %d, %d: the later is not larger", first, second)
	}

	// A leader that is cut off gives up before another takes over.
	three, _ := make(b.direct, "n3")
	b.gate.set(true)
	t.Logf("n3 led %s after n2 was cut off", b.eventually("n3 leads", patient, func() bool { neverBoth(t, cut, three); return leads(three)() }))
	if leads(cut)() {
		t.Error("n2 leads as well")
	}
	if p := cut.Problems(); len(p) > 0 {
		t.Errorf("problems %v", p)
	}
}

// neverBoth fails if the first leads still when the next does. The order counts: between the two questions time passes.
func neverBoth(t *testing.T, first, next *Leader) {
	t.Helper()
	if is, _ := next.Leader(); is {
		if is, _ := first.Leader(); is {
			t.Fatal("two leaders")
		}
	}
}

func TestLeaderWithoutNamespace(t *testing.T) {
	b := newBench(t)
	l := NewLeader(LeaderConfig{Client: b.direct, Namespace: b.ns + "-none", Node: "n1"})
	b.run(l.Run)
	b.eventually("a Problem", patient, func() bool {
		return hasProblem(l.Problems(), "Lease "+b.ns+"-none/strait-leader", "not found", "create the namespace")
	})
}
