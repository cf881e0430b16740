package fleet

import (
	"errors"
	"reflect"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/install/cluster"
)

// TestAsked: of the nodes of other clusters each that lives has its version, if any daemon knows
// it.
func TestAsked(t *testing.T) {
	nodes := func(versions ...string) []api.Node {
		return []api.Node{
			{Cluster: "a", Name: "n1", Version: "v9"},
			{Cluster: "b", Name: "n1", Version: versions[0]}, {Cluster: "b", Name: "n2", Version: versions[1]},
			{Cluster: "b", Name: "n3", Version: "v0.0.1", Dead: true},
		}
	}
	own, others := asked("a", []cluster.NodeStatus{
		{Node: "n1", Status: &api.Status{Version: "v9"}, Nodes: nodes("", "")},
		{Node: "n2", Status: &api.Status{Version: "v9"}, Nodes: nodes("v8", "")},
		{Node: "n3", Err: errors.New("its pod is not ready: it waits for a volume")},
	}, "look at it")
	if want := map[string]string{"b/n1": "v8", "b/n2": ""}; !reflect.DeepEqual(others, want) {
		t.Errorf("others are %v, want %v", others, want)
	}
	if len(own) != 3 || own[0].Name != "a/n1" || own[0].Status == nil || own[2].Status != nil || own[2].Error == "" || own[2].Try != "look at it" || own[0].Try != "" {
		t.Errorf("own are %+v", own)
	}
}
