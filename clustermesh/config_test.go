package clustermesh_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/record"
)

// orders are what a config cluster says.
func orders(names ...string) (out []clustermesh.ConfigObject) {
	for _, n := range names {
		out = append(out, clustermesh.ConfigObject{
			Kind: "MultiClusterService.networking.gke.io", Name: clustermesh.ServiceName{Namespace: "shop", Name: n}, Created: 7,
			Annotations: map[string]string{"networking.gke.io/app-protocols": `{"web": "HTTP2"}`}, Spec: `{"template":{}}`,
		})
	}
	return out
}

// TestConfigFits: what does not fit into a record is left out with the reason; the rest stays, and
// other clusters can use it.
func TestConfigFits(t *testing.T) {
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprint("s", i))
	}
	fit, rest := clustermesh.FitConfig(orders(many...))
	if len(fit) != clustermesh.MaxConfigObjects || len(rest) != 44 || rest[256] == nil || rest[255] != nil {
		t.Errorf("%d fit, %d do not", len(fit), len(rest))
	}
	large := orders(many[:50]...)
	for i := range large {
		large[i].Spec = `{"a":"` + strings.Repeat("x", 16<<10-8) + `"}`
	}
	large[3].Spec += " "
	fit, rest = clustermesh.FitConfig(large)
	if len(fit) != 31 || len(rest) != 19 || !strings.Contains(rest[3].Error(), "at most 16384") || !strings.Contains(rest[49].Error(), "512 KiB") {
		t.Errorf("%d fit, %d do not: %v", len(fit), len(rest), rest)
	}
	if got, problems := record.Usable(clustermesh.Origin{Cluster: "us-east"}, clustermesh.Content{Config: fit}); len(problems) > 0 || len(got.Config) != len(fit) {
		t.Errorf("%d of %d can be used: %v", len(got.Config), len(fit), problems)
	}
	if got, problems := record.Usable(clustermesh.Origin{Cluster: "us-east"}, clustermesh.Content{Config: orders(many...)}); len(problems) > 0 || len(got.Config) != clustermesh.MaxConfigObjects {
		t.Errorf("%d of too many: %v", len(got.Config), problems)
	}
}

// TestStateConfig: what is accepted comes in the order of the list, and silence is not emptiness.
func TestStateConfig(t *testing.T) {
	s := clustermesh.State{Records: clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{
		{Cluster: "a"}:            {Content: clustermesh.Content{Config: orders("a")}},
		{Cluster: "b"}:            {Content: clustermesh.Content{Config: orders("b")}},
		{Cluster: "c"}:            {},
		{Cluster: "d", Node: "n"}: {},
	})}
	said, unknown := s.Config([]clustermesh.ClusterName{"c", "b", "d", "e"})
	if !slices.Equal(unknown, []clustermesh.ClusterName{"d", "e"}) || len(said) != 2 || said[0].Cluster != "c" || said[0].Objects != nil ||
		!said[1].Equal(clustermesh.ClusterConfig{Cluster: "b", Objects: orders("b")}) {
		t.Errorf("%+v, unknown %v", said, unknown)
	}
	for what, change := range map[string]func(*clustermesh.ConfigObject){
		"kind": func(c *clustermesh.ConfigObject) { c.Kind = "x" }, "name": func(c *clustermesh.ConfigObject) { c.Name.Name = "x" },
		"annotations": func(c *clustermesh.ConfigObject) { c.Annotations = nil }, "spec": func(c *clustermesh.ConfigObject) { c.Spec = "{}" },
		"created": func(c *clustermesh.ConfigObject) { c.Created = 1 },
	} {
		other := orders("b")
		if change(&other[0]); said[1].Equal(clustermesh.ClusterConfig{Cluster: "b", Objects: other}) {
			t.Errorf("another %s counts as the same", what)
		}
	}
}
