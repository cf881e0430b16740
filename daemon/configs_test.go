package daemon

import (
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
)

// TestUnknownConfig: a cluster is unknown while it is pinned and its record has not come yet.
func TestUnknownConfig(t *testing.T) {
	d := &Daemon{trust: trusted{members: []clustermesh.ClusterName{"own", "heard", "silent"}}}
	d.who.Cluster = "own"
	d.config.Source.Kubernetes = &KubernetesConfig{AcceptConfigFrom: []clustermesh.ClusterName{"own", "heard", "silent", "evicted"}}
	s := clustermesh.State{Records: clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{{Cluster: "heard"}: {}, {Cluster: "silent", Node: "n"}: {}})}
	if got := d.unknownConfig(s); !slices.Equal(got, []clustermesh.ClusterName{"silent"}) {
		t.Errorf("unknown %v", got)
	}
	if from := (Config{}).configFrom("own"); from != nil {
		t.Errorf("without an API server: %v", from)
	}
}
