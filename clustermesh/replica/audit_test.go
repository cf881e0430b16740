package replica

import (
	"math/rand/v2"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// TestAudits: a peer is asked with each tick whether it holds the same, or only now and then if the
// stream to it is whole, later while news travel, and at once if something may be wrong.
func TestAudits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := pair(t)
	r, other := s.nodes[0], s.peers[1]
	asked := func(out Output) (n int) {
		for _, e := range out.Send {
			if e.Message.Kind() == KindDigest {
				n++
			}
		}
		return n
	}
	// ticks returns in which of the ticks it asks.
	ticks := func(n int, each func()) (out []int) {
		for i := range n {
			each()
			if asked(r.Tick(rng)) > 0 {
				out = append(out, i)
			}
		}
		return out
	}
	nothing := func() {}
	r.synced = true
	if got := ticks(20, nothing); len(got) != 20 {
		t.Errorf("a stream of which only one end knows: asked in ticks %v of 20", got)
	}
	if n := asked(r.Connected(other, true)); n != 0 {
		t.Errorf("%d digests when a stream begins", n)
	}
	got := ticks(200, nothing)
	for i, at := range got[1:] {
		if pause := at - got[i]; pause < auditTicks/2 || pause > auditTicks*3/2 {
			t.Errorf("%d ticks between two audits", pause)
		}
	}
	if len(got) < 200/auditTicks-5 || len(got) > 200/auditTicks+5 {
		t.Errorf("%d audits in 200 ticks", len(got))
	}
	n := 0
	moving := ticks(200, func() {
		n++
		r.Publish(clustermesh.Content{Node: &clustermesh.Node{Name: s.peers[0].Node, GossipPort: uint16(n)}})
	})
	if len(moving) < 4 || len(moving) > 9 {
		t.Errorf("%d audits in 200 ticks while news travel", len(moving))
	}
	ticks(1, nothing)
	r.Hurry()
	if got := ticks(1, nothing); len(got) != 1 {
		t.Error("no audit when one is urgent")
	}
	ticks(1, nothing)
	r.Readmit(nil)
	if got := ticks(1, nothing); len(got) != 1 {
		t.Error("no audit after the records were judged again: what was refused may be admitted, or is reported again")
	}
	if n := asked(r.Dropped(other)); n != 1 {
		t.Errorf("%d digests after messages were dropped", n)
	}
	r.synced = false
	if got := ticks(5, nothing); len(got) != 5 {
		t.Errorf("while it is not synced: asked in ticks %v of 5", got)
	}
	r.synced = true
	r.SetMembers(topology.View{})
	r.SetMembers(topology.View{Members: s.peers})
	if got := ticks(5, nothing); len(got) != 5 {
		t.Errorf("a peer that left and came again: asked in ticks %v of 5", got)
	}
}
