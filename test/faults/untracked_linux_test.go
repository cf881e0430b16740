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
	w := newTunneled(t)
	rules := filepath.Join(t.TempDir(), "notrack.nft")
	must(t, os.WriteFile(rules, []byte(`table ip raw {
		chain PREROUTING { type filter hook prerouting priority raw; ip saddr 10.9.2.0/24 notrack; ip daddr 10.9.2.0/24 notrack; }
		chain OUTPUT { type filter hook output priority raw; ip saddr 10.9.2.0/24 notrack; ip daddr 10.9.2.0/24 notrack; }
	}`), 0o600))
	_, err := w.run("nft -f " + rules)
	must(t, err)
	began := time.Now()
	reported := func() bool {
		s, err := w.life.status()
		return err == nil && slices.ContainsFunc(s.Problems, func(p problem.Problem) bool { return p.Code == problem.UntrackedDropped })
	}
	for !reported() {
		if err := w.call(); err == nil {
			t.Fatal("a call is answered: nothing is untracked")
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatal("it is not reported")
		}
	}
	t.Logf("reported after %s", time.Since(began).Round(time.Second))
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
