package clustermesh_test

import (
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
)

func TestLeft(t *testing.T) {
	names := []clustermesh.NodeName{"n1", "n2", "n4"}
	for _, tc := range []struct {
		name  string
		nodes []clustermesh.NodeName
		node  clustermesh.NodeName
		want  bool
	}{
		{"listed", names, "n2", false},
		{"not listed", names, "n3", true},
		{"behind the last", names, "n5", true},
		{"unknown is not empty", nil, "n3", false},
		{"the cluster's own record", names, "", false},
	} {
		if got := (clustermesh.Content{Nodes: tc.nodes}).Left(tc.node); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// Only a source that has every Node of the cluster says which there are.
func TestClusterContentNodes(t *testing.T) {
	l := clustermesh.Local{Nodes: []clustermesh.Node{{Name: "n2"}, {Name: "n1"}}}
	if got := l.ClusterContent(nil, nil).Nodes; got != nil {
		t.Errorf("of a source that may have some only: %q", got)
	}
	l.NodesKnown = true
	if got := l.ClusterContent(nil, nil).Nodes; !slices.Equal(got, []clustermesh.NodeName{"n1", "n2"}) {
		t.Errorf("of one that has all: %q", got)
	}
}
