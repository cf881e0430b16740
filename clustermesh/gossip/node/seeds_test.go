package node

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/clustermesh/gossip/member"
)

// TestSeedSilent: a seed whose daemon is just restarted is no Problem. One that goes on failing is, until it is
// reached.
func TestSeedSilent(t *testing.T) {
	const seed = "192.0.2.7:7946"
	n := New(config(origin("c1", "n1"), at), Saved{}, at)
	target := []member.Target{{Addr: netip.MustParseAddrPort(seed), Seed: seed}}
	round := func(after time.Duration, err error) bool {
		now := at.Add(after)
		n.EndRound(target, []error{err}, map[string]bool{}, now)
		return hasProblem(n, now, "gossip seed "+seed)
	}
	refused := errors.New("connection refused")
	if round(0, refused) || round(time.Second, refused) {
		t.Error("reported at the first failure")
	}
	if round(2*time.Second, nil) || round(6*time.Second, refused) {
		t.Error("reported as if it had failed all the time")
	}
	if !round(6*time.Second+seedPatience, refused) {
		t.Error("not reported, though it goes on failing")
	}
	if round(12*time.Second, nil) {
		t.Error("reported, though it was reached")
	}
}
