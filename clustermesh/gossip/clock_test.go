package gossip

import (
	"testing"
	"time"

	"strait.io/strait/clustermesh"
)

const year = 365 * 24 * time.Hour

// TestClockCorrected: a daemon started, and was elected, while its clock was ahead. Now the clock is right,
// and what it says of itself and of its cluster is believed, without a restart.
func TestClockCorrected(t *testing.T) {
	west := config(origin("west", "n1"))
	east := config(origin("east", "n1"), west.Bind)
	east.Lead = func() (bool, uint64) { return true, uint64(time.Now().Add(year).UnixMilli()) }
	dw := start(t, west)
	east.started = time.Now().Add(year)
	de := start(t, east)
	de.say(7)
	eventually(t, "what the node says is believed", func() bool { return dw.said(east.Self) == 7 })
	eventually(t, "what its cluster says is believed", func() bool {
		de.PublishCluster(clustermesh.Content{Nodes: []clustermesh.NodeName{"n1"}})
		return len(dw.State().Records[origin("east", "")].Content.Nodes) == 1
	})
	if !de.hasProblem("node east/n1", "clock was 8760h", "other nodes believe this one again within seconds") {
		t.Errorf("no Problem says so: %v", de.Problems())
	}
	if dw.contact(east.Self) != clustermesh.Alive {
		t.Errorf("contact %s", dw.contact(east.Self))
	}
	stamp := dw.State().Records[origin("east", "")].Stamp
	time.Sleep(3 * beat)
	if now := dw.State().Records[origin("east", "")].Stamp; now != stamp {
		t.Errorf("the cluster's record is stamped again and again: %s, %s", stamp, now)
	}
}
