package object

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/record"
)

// routingOf reads annotations, and returns the Problems' messages.
func routingOf(annotations map[string]string) (*clustermesh.Routing, string) {
	var r report
	out := readRouting(noted{{annotations, r.on("Service", "shop", "cart")}})
	var said []string
	for _, p := range r.problems {
		said = append(said, p.Field+": "+p.Message)
	}
	return out, strings.Join(said, "\n")
}

func TestReadRouting(t *testing.T) {
	got, said := routingOf(map[string]string{
		AnnotationLocality: "Zone, region,clusterset", AnnotationPrefer: "b, a,b,", AnnotationWeights: " b = 10,a=90 ",
		AnnotationMinReady: "30 %", AnnotationDrain: "2026-11-23T12:00:00Z/5m",
	})
	want := &clustermesh.Routing{
		Tiers: []string{"zone", "region", "clusterset"}, Prefer: []clustermesh.ClusterName{"b", "a"},
		Weights:  []clustermesh.ClusterWeight{{Cluster: "a", Weight: 90}, {Cluster: "b", Weight: 10}},
		MinReady: clustermesh.MinReady{Percent: 30}, Drain: &clustermesh.Drain{Since: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC).Unix(), Over: 300},
	}
	if !reflect.DeepEqual(got, want) || said != "" {
		t.Errorf("%+v, and %s", got, said)
	}
	for _, c := range []struct{ key, value, says string }{
		{AnnotationLocality, "zone,node", "node does not come after zone"},
		{AnnotationLocality, "moon", `"moon" is not a tier`},
		{AnnotationPrefer, "a/b", "is not a usable name"},
		{AnnotationWeights, "a", "is not a cluster with a weight"},
		{AnnotationWeights, "a=1,a=2", "a has two weights"},
		{AnnotationWeights, "a=0,b=0", "all weights are 0"},
		{AnnotationWeights, "a=-1", "is not a cluster with a weight"},
		{AnnotationMinReady, "0", "is neither a number"},
		{AnnotationMinReady, "101%", "is neither a number"},
		{AnnotationMinReady, "x", "is neither a number"},
		{AnnotationDrain, "2026-11-23T12:00:00Z/25h", "does not say how to drain"},
		{AnnotationDrain, "now", "does not say how to drain"},
	} {
		if _, said := routingOf(map[string]string{c.key: c.value}); !strings.Contains(said, "metadata.annotations["+c.key+"]: ") || !strings.Contains(said, c.says) {
			t.Errorf("%s: %q says %q, want %q", c.key, c.value, said, c.says)
		}
	}
	if got, said := routingOf(map[string]string{AnnotationDrain: "false", AnnotationPrefer: " , "}); got != nil || said != "" {
		t.Errorf("nothing is asked for: %+v, %s", got, said)
	}
}

// A Service's word counts before its export's.
func TestRoutingOfTwo(t *testing.T) {
	var r report
	got := readRouting(noted{
		{map[string]string{AnnotationMinReady: "3"}, r.on("Service", "shop", "cart")},
		{map[string]string{AnnotationMinReady: "4", AnnotationPrefer: "a"}, r.on("ServiceExport", "shop", "cart")},
	})
	if got.MinReady.Count != 3 || len(got.Prefer) != 1 || len(r.problems) != 1 || !strings.Contains(r.problems[0].Message, "contradicts") {
		t.Errorf("%+v, %v", got, r.problems)
	}
}

// Whatever annotations say, what is read of them is usable by every other cluster.
func FuzzReadRouting(f *testing.F) {
	f.Add("zone,clusterset", "a,b", "a=1,b=2", "30%", "2026-11-23T12:00:00Z/5m")
	f.Add("", "", "=,=1,a=", "-1", "true")
	f.Fuzz(func(t *testing.T, tiers, prefer, weights, min, drain string) {
		got, _ := routingOf(map[string]string{AnnotationLocality: tiers, AnnotationPrefer: prefer, AnnotationWeights: weights, AnnotationMinReady: min, AnnotationDrain: drain})
		export := clustermesh.Export{Service: clustermesh.ServiceName{Namespace: "shop", Name: "cart"}, Type: clustermesh.Headless, Routing: got}
		c, problems := record.Usable(clustermesh.Origin{Cluster: "a"}, clustermesh.Content{Exports: []clustermesh.Export{export}})
		if len(problems) > 0 || !c.Exports[0].Routing.Equal(got) {
			t.Fatalf("%+v: %v", got, problems)
		}
	})
}
