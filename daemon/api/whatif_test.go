package api

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestOverloaded: an endpoint is overloaded if it would get more than factor times what it has, or, if it
// has nothing, than the endpoint that has most.
func TestOverloaded(t *testing.T) {
	frontend := func(shares ...float64) Service {
		f := Frontend{}
		for i, s := range shares {
			a := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 80)
			f.Endpoints = append(f.Endpoints, Endpoint{Addr: a, Share: s, Reason: "ready"})
		}
		return Service{Name: "shop/cart", Frontends: []Frontend{f}}
	}
	for _, tc := range []struct {
		name          string
		before, after []float64
		factor        float64
		want          string // the endpoints that are overloaded, by number
	}{
		{"nothing changes", []float64{0.5, 0.5}, []float64{0.5, 0.5}, 1.4, ""},
		{"one of two is left", []float64{0.5, 0.5}, []float64{1, 0}, 1.4, "0"},
		{"four of five are left", []float64{0.2, 0.2, 0.2, 0.2, 0.2}, []float64{0.25, 0.25, 0.25, 0.25, 0}, 1.4, ""},
		{"as many stood by", []float64{0.5, 0.5, 0, 0}, []float64{0, 0, 0.5, 0.5}, 1.4, ""},
		{"one stood by for four", []float64{0.25, 0.25, 0.25, 0.25, 0}, []float64{0, 0, 0, 0, 1}, 1.4, "4"},
		{"a spill", []float64{0.25, 0.25, 0.25, 0.25, 0}, []float64{0.35, 0, 0, 0, 0.65}, 1.4, "4"},
		{"nothing had anything", []float64{0}, []float64{1}, 1.4, ""},
		{"no counters", []float64{0.5, 0.5}, []float64{1, 0}, 0, ""},
	} {
		w := NewWhatIf(Viewpoint{}, "drain a", []Service{frontend(tc.before...)}, []Service{frontend(tc.after...)}, tc.factor)
		var got []string
		for _, m := range w.Moved {
			for _, e := range m.Endpoints {
				if e.Overloaded {
					got = append(got, fmt.Sprint(e.Addr.Addr().As4()[3]))
				}
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: overloaded are %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestExplain: endpoints that the change takes away have the change as their reason, and the others
// keep theirs.
func TestExplain(t *testing.T) {
	services := func(here, there float64) []Service {
		return []Service{{Name: "shop/cart", Frontends: []Frontend{{Endpoints: []Endpoint{
			{Addr: netip.MustParseAddrPort("10.0.0.1:80"), Cluster: "a", Node: "n1", Share: here, Reason: "pod is not ready"},
			{Addr: netip.MustParseAddrPort("10.0.1.1:80"), Cluster: "b", Node: "n1", Share: there, Reason: "ready"},
		}}}}}
	}
	w := NewWhatIf(Viewpoint{}, "node a/n1 dead", services(1, 0), services(0, 1), 0)
	w.Explain(func(cluster, node string) string {
		if cluster == "a" && node == "n1" {
			return "node a/n1 is dead"
		}
		return ""
	})
	got := map[string]string{}
	for _, e := range w.Moved[0].Endpoints {
		got[e.Cluster] = e.Reason
	}
	if got["a"] != "node a/n1 is dead" || got["b"] != "ready" {
		t.Errorf("reasons are %q", got)
	}
}
