package cluster_test

import (
	"reflect"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/install/cluster"
)

// TestRemains: the nodes that say what they have open are added up, and those that do not are named. Only
// if all say that nothing is left, it is.
func TestRemains(t *testing.T) {
	some := func(n int) *int { return &n }
	nodes := func(dead bool) []api.Node {
		return []api.Node{{Cluster: "a", Name: "n1"}, {Cluster: "a", Name: "n2"}, {Cluster: "b", Name: "n1", Dead: dead}}
	}
	answer := func(c, node string, drained float64, open *int, all []api.Node) cluster.Answer {
		return cluster.Answer{Cluster: c, Node: node, Nodes: all, Clusters: []api.Cluster{{Name: "a", Drained: drained, Open: open}, {Name: "b"}}}
	}
	for name, tc := range map[string]struct {
		answers []cluster.Answer
		want    cluster.Remaining
		open    int
		over    bool
	}{
		"no answers": {nil, cluster.Remaining{}, 0, false},
		"another cluster": {
			[]cluster.Answer{{Cluster: "c", Node: "n1", Clusters: []api.Cluster{{Name: "c"}}}},
			cluster.Remaining{Unasked: []string{"c/n1"}}, 0, false,
		},
		"not drained": {
			[]cluster.Answer{answer("a", "n1", 0, nil, nil)},
			cluster.Remaining{Known: true, Unasked: []string{"a/n1"}}, 0, false,
		},
		"two of three": {
			[]cluster.Answer{answer("a", "n1", 1, some(2), nodes(false)), answer("a", "n2", 1, some(5), nodes(false))},
			cluster.Remaining{Known: true, Drained: 1, Nodes: []cluster.NodeOpen{{Node: "a/n2", Open: 5}, {Node: "a/n1", Open: 2}}, Unasked: []string{"b/n1"}}, 7, false,
		},
		"one cannot count": {
			[]cluster.Answer{answer("a", "n1", 1, some(0), nil), answer("a", "n2", 1, nil, nil)},
			cluster.Remaining{Known: true, Drained: 1, Nodes: []cluster.NodeOpen{{Node: "a/n1"}}, Unasked: []string{"a/n2"}}, 0, false,
		},
		"one is behind": {
			[]cluster.Answer{answer("a", "n1", 0.5, some(0), nil), answer("a", "n2", 1, some(0), nil)},
			cluster.Remaining{Known: true, Drained: 0.5, Nodes: []cluster.NodeOpen{{Node: "a/n1"}, {Node: "a/n2"}}}, 0, false,
		},
		"a dead node has none": {
			[]cluster.Answer{answer("a", "n1", 1, some(0), nodes(true)), answer("a", "n2", 1, some(0), nodes(true))},
			cluster.Remaining{Known: true, Drained: 1, Nodes: []cluster.NodeOpen{{Node: "a/n1"}, {Node: "a/n2"}}}, 0, true,
		},
	} {
		got := cluster.Remains("a", tc.answers)
		if !reflect.DeepEqual(got, tc.want) || got.Open() != tc.open || got.Over() != tc.over {
			t.Errorf("%s: %+v, %d open, over %v; want %+v, %d, %v", name, got, got.Open(), got.Over(), tc.want, tc.open, tc.over)
		}
	}
}
