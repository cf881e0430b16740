package redteam

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/testutil"
)

// TestOwnRecordOffered: a holder of the gossip key tells a daemon of a version of the daemon's own record
// that is as far in the future as may be. The daemon does not write above it: others, whose clocks are
// behind, would refuse that as from the future. They hear what the daemon says.
func TestOwnRecordOffered(t *testing.T) {
	if !insideWithClocks(t) {
		return
	}
	w := newWorld(t, nil)
	w.west.restart(-time.Minute)
	w.west.hears("east", 1)
	victim := origin("east", "n1")
	k := w.keyholder(origin("mallory", "x"), "")
	defer k.joins(victim)()
	defer during(50*time.Millisecond, func(int) {
		at := uint64(time.Now().Add(10*time.Minute - time.Second).UnixNano())
		k.says(victim, &replica.Announce{Offers: []replica.Offer{
			{Origin: victim, Version: replica.Version{Epoch: at, Count: 1}},
			{Origin: origin("east", "ghost"), Version: replica.Version{Epoch: at, Count: 1}},
		}})
	})()
	testutil.Eventually(t, patience, func() error {
		if _, asked := k.asked.Load(victim); !asked {
			return errors.New("the attacker is not heard, so this shows nothing")
		}
		return nil
	})
	for _, at := range []netip.Addr{moved, pod(eastNumber)} {
		w.east.write("manifests/serve.yaml", manifestServe(at))
		w.west.balances(at)
	}
	w.east.saysNot("STR2403")
}
