package connectivity

import (
	"slices"
	"testing"
)

func TestMeasures(t *testing.T) {
	clusters := pair()
	clusters[0].Servers = append(clusters[0].Servers, Server{Identity{"a", "a2", "pod-2"}, addrs("10.1.1.1")})
	own, ok := Measures(clusters[0], clusters[0])
	if !ok || len(own.Direct) != 1 || own.Direct[0].String() != "10.1.0.1:8080" || own.Far.String() != "10.1.1.1:8080" || own.Through.String() != "241.0.0.1:80" {
		t.Errorf("in its own cluster: %+v, %v", own, ok)
	}
	other, ok := Measures(clusters[0], clusters[1])
	if !ok || len(other.Direct) != 1 || other.Far != other.Direct[0] || other.Through.String() != "241.0.0.2:80" {
		t.Errorf("in another cluster: %+v, %v", other, ok)
	}
	if m, ok := Measures(clusters[1], clusters[0]); ok {
		t.Errorf("without an import: %+v", m)
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, c := range []struct {
		values []float64
		part   float64
		want   float64
	}{{nil, 0.5, 0}, {[]float64{3}, 0.99, 3}, {[]float64{3, 1, 2}, 0.5, 2}, {hundred, 0.5, 50}, {hundred, 0.99, 99}, {hundred, 1, 100}, {hundred, 0, 1}} {
		if got := quantile(slices.Clone(c.values), c.part); got != c.want {
			t.Errorf("quantile %v of %d values: %v, want %v", c.part, len(c.values), got, c.want)
		}
	}
	if p := Sum("a", "b", Measure{}, Measured{}); p.Ratio != 0 || p.Mbit != 0 || p.Lost != 0 {
		t.Errorf("nothing was measured: %+v", p)
	}
}
