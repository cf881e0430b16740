package object

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/record"
)

func karmada(spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService",
		"metadata": map[string]any{"namespace": "shop", "name": "cart"}, "spec": spec,
	}}
}

func TestKarmada(t *testing.T) {
	named := func(names ...string) (out []any) {
		for _, n := range names {
			out = append(out, map[string]any{"name": n})
		}
		return out
	}
	for what, c := range map[string]struct {
		spec     map[string]any
		want     string
		problems []string
	}{
		"all": {map[string]any{"types": []any{"CrossCluster"}}, "true [] [] 1", nil},
		"provider": {map[string]any{"types": []any{"CrossCluster"}, "providerClusters": named("east"), "consumerClusters": named("west", "north")},
			"true [north west] [] 0", nil},
		"consumer": {map[string]any{"types": []any{"CrossCluster"}, "providerClusters": named("west"), "consumerClusters": named("east")},
			"false [] [west] 1", nil},
		"old names": {map[string]any{"types": []any{"CrossCluster"}, "serviceProvisionClusters": []any{"west"}, "serviceConsumptionClusters": []any{"east"}},
			"false [] [west] 1", nil},
		"load balancer": {map[string]any{"types": []any{"LoadBalancer"}}, "", []string{"MultiClusterService shop/cart spec.types"}},
		"bad name": {map[string]any{"types": []any{"CrossCluster"}, "providerClusters": named("East")}, "",
			[]string{"MultiClusterService shop/cart spec.providerClusters[0]"}},
		"ports": {map[string]any{"types": []any{"CrossCluster"}, "ports": []any{map[string]any{"port": int64(80)}}}, "true [] [] 1",
			[]string{"MultiClusterService shop/cart spec.ports"}},
	} {
		objs := shop("east")
		objs.Insert(karmadaFrom(karmada(c.spec)))
		l := Local(objs)
		var problems []string
		for _, p := range l.Problems {
			problems = append(problems, p.Object+" "+p.Field)
		}
		if got := globalsOf(l); got != c.want || !slices.Equal(problems, c.problems) {
			t.Errorf("%s: %q, problems %q", what, got, problems)
		}
		origin := clustermesh.Origin{Cluster: "east"}
		if _, problems := record.Usable(origin, clustermesh.Content{Globals: l.Globals}); len(problems) > 0 {
			t.Errorf("%s: other clusters leave it out: %v", what, problems)
		}
	}
}
