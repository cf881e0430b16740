package demo

import (
	"net/netip"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/demo/lab"
)

// A service without its ClusterSetIP has no answer by name yet, so the demo must not call it.
func TestHasAddress(t *testing.T) {
	pending := api.Service{Name: "default/serve"}
	other := api.Service{Name: "default/far", IPs: []netip.Addr{netip.MustParseAddr("241.0.0.2")}}
	given := pending
	given.IPs = []netip.Addr{netip.MustParseAddr("241.0.0.1")}
	for name, c := range map[string]struct {
		items []api.Service
		want  bool
	}{
		"unknown":   {[]api.Service{other}, false},
		"pending":   {[]api.Service{pending, other}, false},
		"addressed": {[]api.Service{other, given}, true},
	} {
		if got := hasAddress(c.items, lab.Serve); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
