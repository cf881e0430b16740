package gke_test

import (
	"reflect"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gke"
)

// TestSharedElsewhere: a config cluster sees by the exports of others which of them obey.
func TestSharedElsewhere(t *testing.T) {
	by := func(policies ...string) (r clustermesh.Record) {
		for _, p := range policies {
			r.Content.Exports = append(r.Content.Exports, clustermesh.Export{Policy: p})
		}
		return r
	}
	s := clustermesh.State{Records: clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{
		{Cluster: "c1"}: by("shop/cart", "c1/shop/own"), {Cluster: "c3"}: by("c1/shop/cart"),
		{Cluster: "c2"}: by("c1/shop/cart", "c1/shop/web", "c3/shop/cart", "c10/shop/cart", ""),
	})}
	if got, want := gke.SharedElsewhere(s, "c1"), map[string][]string{"c1/shop/cart": {"c2", "c3"}, "c1/shop/web": {"c2"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
