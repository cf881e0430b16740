package gossip

import (
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
)

// TestNodeThatLeft: who is taken out of the cluster and is not heard is forgotten, on disk too; if its daemon returns,
// it is heard for a while, whether the leader lists it or not.
func TestNodeThatLeft(t *testing.T) {
	t.Parallel()
	c1 := config(origin("a", "n1"))
	c2, c3 := config(origin("a", "n2"), c1.Bind), config(origin("b", "n1"), c1.Bind)
	c3.StateDir = t.TempDir()
	d1, d2, d3 := start(t, c1), start(t, c2), start(t, c3)
	d1.say(1)
	d2.say(2)
	d3.say(3)
	eventually(t, "all are heard", func() bool { return d1.said(c2.Self) == 2 && d3.said(c2.Self) == 2 })
	eventually(t, "n1 leads", d1.Leader)
	d1.PublishCluster(clustermesh.Content{Nodes: []clustermesh.NodeName{"n1"}})
	d2.stop()
	for _, d := range []*daemon{d1, d3} {
		t.Logf("forgotten after %s", eventually(t, "the node is forgotten", func() bool { return d.said(c2.Self) == -1 }))
		eventually(t, "so is whether it answers", func() bool { _, seen := d.State().Contacts.Lookup(c2.Self); return !seen })
	}
	eventually(t, "it is not kept", func() bool {
		kept, err := loadState(c3.StateDir)
		return err == nil && len(kept) > 0 && !slices.ContainsFunc(kept, func(e replica.Entry) bool { return e.Record.Origin == c2.Self })
	})
	again := start(t, c2)
	again.say(20)
	eventually(t, "it is heard again", func() bool { return d1.said(c2.Self) == 20 && d3.said(c2.Self) == 20 })
}
