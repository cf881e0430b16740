package daemon

import (
	"reflect"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/server"
)

// TestSiblings: the nodes of the own cluster are those with a record, and those that the cluster lists.
func TestSiblings(t *testing.T) {
	v := twoClusters()
	cluster := clustermesh.Origin{Cluster: "a"}
	r := v.state.Records.Get(cluster)
	r.Content.Nodes = []clustermesh.NodeName{"n3", "n1"}
	v.state.Records = v.state.Records.With(cluster, r)
	n2 := clustermesh.Origin{Cluster: "a", Node: "n2"}
	v.state.Records = v.state.Records.With(n2, clustermesh.Record{Origin: n2, Content: clustermesh.Content{Node: &clustermesh.Node{Name: "n2"}}})
	v.state.Contacts = v.state.Contacts.With(n2, clustermesh.Quiet)
	v.heard[n2] = time.Unix(70, 0)
	want := []server.Peer{{Name: "n1", Contact: api.Self}, {Name: "n2", Contact: "quiet", Heard: time.Unix(70, 0)}, {Name: "n3", Contact: "held"}}
	if got := v.siblings(); !reflect.DeepEqual(got, want) {
		t.Errorf("siblings %+v, want %+v", got, want)
	}
}
