package kernel

import (
	"net/netip"
	"slices"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/l4"
)

func TestMapFilter(t *testing.T) {
	frontend := func(text string) l4.Addr {
		a, err := l4.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	all := []l4.Addr{frontend("241.7.3.9:80/TCP"), frontend("241.7.3.9:53/UDP"), frontend("241.7.3.9:53/TCP"),
		frontend("241.200.1.1:80/TCP"), frontend("[fd00::9]:80/TCP")}
	service := func(name string, ports ...api.Frontend) api.Service { return api.Service{Name: name, Frontends: ports} }
	from := pinned{services: []api.Service{
		service("default/serve", api.Frontend{Addr: frontend("241.7.3.9:80/TCP"), Port: "http"}, api.Frontend{Addr: frontend("241.7.3.9:53/UDP"), Port: "dns"}),
		service("default/far", api.Frontend{Addr: frontend("241.200.1.1:80/TCP")}), service("default/peers"),
	}}
	for arg, want := range map[string][]int{
		"241.7.3.9": {0, 1, 2}, "241.7.3.9:53": {1, 2}, "241.7.3.9:53/udp": {1}, "241.7.3.9/TCP": {0, 2},
		"::ffff:241.7.3.9": {0, 1, 2}, "[::ffff:241.7.3.9]:80": {0}, "fd00::9": {4}, "[fd00::9]": {4}, "[fd00::9]:80": {4},
		"fd00::9/UDP": nil, "10.0.0.1": nil, "default/serve": {0, 1}, "default/serve:dns": {1}, "default/serve:80": {0},
		"default/far": {3}, "default/peers": nil,
	} {
		f, err := parseMapFilter([]string{arg})
		if err == nil {
			f, err = f.resolve(from)
		}
		if err != nil {
			t.Errorf("%s: %v", arg, err)
			continue
		}
		var got []int
		for i, a := range all {
			if f.matches(a) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s chooses %v, want %v", arg, got, want)
		}
	}
	if f, err := parseMapFilter(nil); err != nil || !f.matches(all[0]) {
		t.Errorf("no filter: %+v, %v", f, err)
	}
}

func FuzzParseMapFilter(f *testing.F) {
	for _, s := range []string{"default/serve:80", "241.7.3.9", "241.7.3.9:80/TCP", "[fd00::9]:80/UDP", "/", ":", "fe80::1%eth0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		filter, err := parseMapFilter([]string{arg})
		if err != nil {
			return
		}
		if (filter.service != "") == filter.ip.IsValid() {
			t.Fatalf("%q is a service or an address: %+v", arg, filter)
		}
		at := l4.Addr{IP: filter.ip, Port: filter.port, Proto: filter.proto}
		if filter.ip.IsValid() && (!filter.matches(at) || filter.matches(l4.Addr{IP: netip.MustParseAddr("192.0.2.77"), Port: 9})) &&
			filter.ip != netip.MustParseAddr("192.0.2.77") {
			t.Fatalf("%q does not choose %s alone", arg, at)
		}
	})
}
