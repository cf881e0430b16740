package daemon

import (
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
)

// TestMirrorView: what a cluster offers counts once it has spoken. The word of one that was evicted
// is known: it offers nothing.
func TestMirrorView(t *testing.T) {
	record := func(c clustermesh.ClusterName) (clustermesh.Origin, clustermesh.Record) {
		o := clustermesh.Origin{Cluster: c}
		return o, clustermesh.Record{Origin: o}
	}
	s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}, Contacts: clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Contact{
		{Cluster: "heard", Node: "n1"}: clustermesh.Alive, {Cluster: "held", Node: "n1"}: clustermesh.Quiet,
	})}
	for _, c := range []clustermesh.ClusterName{"own", "heard", "held"} {
		o, r := record(c)
		s.Records = s.Records.With(o, r)
	}
	members := []clustermesh.ClusterName{"heard", "held", "never", "own"}
	v := mirrorView([]policy.Policy{{}}, "own", members, clustermesh.Local{Namespaces: []string{"shop"}}, s)
	if len(v.Clusters) != 1 || v.Clusters[0].ID != "heard" || v.Clusters[0].Offered == nil || !v.Namespaces["shop"] {
		t.Errorf("%+v", v)
	}
	for c, want := range map[string]bool{"heard": false, "held": true, "never": true, "evicted": false} {
		if v.Unknown(c) != want {
			t.Errorf("%s is unknown: %v", c, !want)
		}
	}
}
