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
	time.Sleep(2 * retryPeriod)
	if is, _ := cut.Leader(); is {
		t.Fatal("two leaders")
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
	t.Logf("gave up after %s", b.eventually("n2 gives up", patient, func() bool { is, _ := cut.Leader(); return !is }))
	if is, _ := three.Leader(); is {
		t.Error("n3 led already")
	}
	t.Logf("n3 led %s later", b.eventually("n3 leads", patient, leads(three)))
	if p := cut.Problems(); len(p) > 0 {
		t.Errorf("problems %v", p)
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
