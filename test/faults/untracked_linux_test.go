package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// Where another program turns connection tracking off for pods' addresses, as Cilium can, calls of
// the node get no answer, and the status says why until that is over.
func TestUntracked(t *testing.T) {
	t.Parallel()
	w := newTunneled(t)
	rules := filepath.Join(t.TempDir(), "notrack.nft")
	must(t, os.WriteFile(rules, []byte(`table ip raw {
		chain PREROUTING { type filter hook prerouting priority raw; ip saddr 10.9.2.0/24 notrack; ip daddr 10.9.2.0/24 notrack; }
		chain OUTPUT { type filter hook output priority raw; ip saddr 10.9.2.0/24 notrack; ip daddr 10.9.2.0/24 notrack; }
	}`), 0o600))
	_, err := w.run("nft -f " + rules)
	must(t, err)
	reported := func() bool { return w.life.reports(problem.UntrackedDropped) }
	untilReported(t, reported, w.call)
	_, err = w.run("nft delete table ip raw")
	must(t, err)
	ended := time.Now()
	testutil.Eventually(t, patience, w.call)
	t.Logf("calls are answered after %s", time.Since(ended).Round(time.Second))
	testutil.Eventually(t, 2*time.Minute, func() error {
		if reported() {
			return fmt.Errorf("it is reported %s after the rules went", time.Since(ended).Round(time.Second))
		}
		return nil
	})
	t.Logf("solved after %s", time.Since(ended).Round(time.Second))
}

// A node that another cluster calls at its own address, and not at a pod's, refuses that, and reports
// it once it goes on.
func TestTunnelRefused(t *testing.T) {
	t.Parallel()
	w := newTunneled(t)
	if w.other.reports(problem.TunnelRefused) {
		t.Error("it is reported before")
	}
	untilReported(t, func() bool { return w.other.reports(problem.TunnelRefused) }, func() error {
		c, err := w.dialTo("10.9.2.1:22")
		if err == nil {
			c.Close()
		}
		return err
	})
	must(t, w.call())
}

// untilReported calls what must fail until it is reported.
func untilReported(t *testing.T, reported func() bool, call func() error) {
	t.Helper()
	began := time.Now()
	for !reported() {
		if err := call(); err == nil {
			t.Fatal("a call gets through")
		}
		if time.Since(began) > 3*time.Minute {
			t.Fatal("it is not reported")
		}
	}
	t.Logf("reported after %s", time.Since(began).Round(time.Second))
}

// reports says whether the status has a problem of a code.
func (p *process) reports(code problem.Code) bool {
	s, err := p.status()
	return err == nil && slices.ContainsFunc(s.Problems, func(p problem.Problem) bool { return p.Code == code })
}
