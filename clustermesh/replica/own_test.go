package replica

import (
	"testing"

	"strait.io/strait/clustermesh"
)

// TestOwn: what this node knows of its own record is in force with each version of it, and after all records
// were judged again. It goes to no other peer.
func TestOwn(t *testing.T) {
	self, cluster := clustermesh.Origin{Cluster: "a", Node: "n1"}, clustermesh.Origin{Cluster: "a"}
	proven := true
	r := New(Config{Self: self, Epoch: 1, Own: func(rec clustermesh.Record) clustermesh.Record {
		rec.KeyProven = proven
		return rec
	}}, nil)
	check := func(when string) {
		t.Helper()
		if rs := r.Records(); rs.Get(self).KeyProven != proven || rs.Get(cluster).KeyProven || r.entries[self].Record.KeyProven {
			t.Errorf("%s: proven %t, the cluster's %t", when, rs.Get(self).KeyProven, rs.Get(cluster).KeyProven)
		}
	}
	r.Publish(clustermesh.Content{Node: &clustermesh.Node{Name: "n1"}})
	r.PublishCluster(clustermesh.Content{}, 1)
	check("published")
	proven = false
	r.Renew()
	check("renewed")
	proven = true
	r.Readmit(nil)
	check("judged again")
}
