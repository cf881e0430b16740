package gossip

import (
	"fmt"
	"testing"

	"strait.io/strait/clustermesh"
)

// TestInventedMembers: an attacker that has the gossip key alone and invents nodes of a pinned cluster takes no
// more seats than its quota has. A node that the cluster has signed is believed all the same, and
// becomes a member.
func TestInventedMembers(t *testing.T) {
	t.Parallel()
	const quota, invented = 3, 6
	pins := pinned("west", "east")
	east := pins["east"]
	east.Quota.Nodes = quota
	pins["east"] = east
	first := config(origin("west", "n1"))
	west := start(t, signing(first, pins))
	for i := range invented {
		start(t, config(origin("east", fmt.Sprint("x", i)), first.Bind))
	}
	members := func() (n int) {
		for _, o := range west.members() {
			if o.Cluster == "east" {
				n++
			}
		}
		return n
	}
	eventually(t, "the invented ones take all seats, and the others are refused", func() bool {
		return members() == quota && west.Refused()["member"] > 0
	})
	n1 := start(t, signing(config(origin("east", "n1"), first.Bind), pins))
	n1.Publish(placed(n1.cfg.Self, 1, "1"))
	eventually(t, "the node of east is believed, and alive", func() bool {
		return west.said(n1.cfg.Self) == 1 && west.contact(n1.cfg.Self) == clustermesh.Alive
	})
	if n := members(); n > quota+1 {
		t.Errorf("%d members of east, want %d", n, quota+1)
	}
}
