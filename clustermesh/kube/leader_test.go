package kube

import (
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// TestCandidacy: a node that no longer stands for election gives up the Lease at once, and can lead again.
func TestCandidacy(t *testing.T) {
	b := newBench(t)
	leads := func(l *Leader) func() bool {
		return func() bool { is, _ := l.Leader(); return is }
	}
	one := NewLeader(LeaderConfig{Client: b.direct, Namespace: b.ns, Node: "n1", Log: testutil.Logger(t)})
	b.run(one.Run)
	b.eventually("n1 leads", patient, leads(one))
	two := NewLeader(LeaderConfig{Client: b.direct, Namespace: b.ns, Node: "n2", Log: testutil.Logger(t)})
	two.SetCandidate(false)
	b.run(two.Run)
	time.Sleep(2 * retryPeriod)
	two.SetCandidate(true)
	one.SetCandidate(false)
	if leads(one)() {
		t.Error("it leads, and does not stand")
	}
	if took := b.eventually("n2 leads", patient, leads(two)); took > leaseDuration-retryPeriod {
		t.Logf("it took %s, as long as an election after a death", took)
	}
	_, first := one.Leader()
	two.SetCandidate(false)
	one.SetCandidate(true)
	b.eventually("n1 leads again", patient, leads(one))
	if _, again := one.Leader(); again <= first {
		t.Errorf("terms %d, then %d", first, again)
	}
}

// TestAs: a client with a token is the token's account, whatever client it was made from, and
// follows when the token changes.
func TestAs(t *testing.T) {
	b := newBench(t)
	token := "garbage"
	c, err := b.direct.As(func() string { return token })
	must(t, err)
	core := coreOf(t, c)
	who := func() (string, error) {
		r, err := core.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		return r.Status.UserInfo.Username, nil
	}
	if name, err := who(); !apierrors.IsUnauthorized(err) {
		t.Errorf("with garbage it is %q, %v", name, err)
	}
	accounts := b.core.CoreV1().ServiceAccounts(b.ns)
	_, err = accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "lent"}}, metav1.CreateOptions{})
	must(t, err)
	made, err := accounts.CreateToken(t.Context(), "lent", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	token = made.Status.Token
	if name, err := who(); err != nil || name != "system:serviceaccount:"+b.ns+":lent" {
		t.Errorf("with a token it is %q, %v", name, err)
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
