package daemon

import (
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
)

// TestClusterNews: the log has a line when a cluster joins, when it is not heard any more and when it leaves,
// and none for single nodes of it.
func TestClusterNews(t *testing.T) {
	at := func(pairs ...any) (out clustermesh.ByOrigin[clustermesh.Contact]) {
		for i := 0; i < len(pairs); i += 2 {
			out = out.With(clustermesh.Origin{Cluster: "far", Node: clustermesh.NodeName(pairs[i].(string))}, pairs[i+1].(clustermesh.Contact))
		}
		return out.With(clustermesh.Origin{Cluster: "own", Node: "n1"}, clustermesh.Alive)
	}
	const alive, quiet, silent, held = clustermesh.Alive, clustermesh.Quiet, clustermesh.Silent, clustermesh.Held
	for _, c := range []struct {
		what        string
		before, now clustermesh.ByOrigin[clustermesh.Contact]
		want        string
	}{
		{"it begins", at(), at("n1", held, "n2", held), "the cluster is not heard"},
		{"it joins", at("n1", held), at("n1", alive), "cluster joined"},
		{"it is new", at(), at("n1", alive), "cluster joined"},
		{"a node more", at("n1", alive), at("n1", alive, "n2", alive), ""},
		{"a node less", at("n1", alive, "n2", alive), at("n1", alive, "n2", silent), ""},
		{"the last one", at("n1", alive, "n2", silent), at("n1", silent, "n2", silent), "the cluster is not heard"},
		{"its daemons stop", at("n1", alive), at("n1", quiet), "no daemon of the cluster is heard, its machines answer"},
		{"it leaves", at("n1", alive), at(), "cluster left"},
		{"nothing", at("n1", alive), at("n1", alive), ""},
	} {
		var got []string
		for _, x := range clusterNews(c.before, c.now, "own") {
			got = append(got, string(x.cluster)+": "+x.text)
		}
		if c.want == "" && len(got) > 0 || c.want != "" && !slices.Equal(got, []string{"far: " + c.want}) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
