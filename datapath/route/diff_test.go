package route

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/datapath"
)

func dst(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func TestDiff(t *testing.T) {
	src := netip.MustParseAddr("10.1.0.1")
	tunnel := datapath.Route{Dst: dst("10.2.0.0/16"), Src: src}
	refuse := datapath.Route{Dst: dst("10.2.0.0/16"), Unreachable: true}
	const link = 7
	route := func(r datapath.Route, l, m int) kernelRoute { return kernelRoute{Route: r, link: l, metric: m} }
	for name, c := range map[string]struct {
		have    []kernelRoute
		want    []datapath.Route
		put     []kernelRoute
		remove  []kernelRoute
		problem string
	}{
		"new":                {want: []datapath.Route{tunnel}, put: []kernelRoute{route(tunnel, link, metric)}},
		"there":              {have: []kernelRoute{route(tunnel, link, metric)}, want: []datapath.Route{tunnel}},
		"unwanted":           {have: []kernelRoute{route(tunnel, link, metric)}, remove: []kernelRoute{route(tunnel, link, metric)}},
		"another device":     {have: []kernelRoute{route(tunnel, 6, metric)}, want: []datapath.Route{tunnel}, put: []kernelRoute{route(tunnel, link, metric)}},
		"becomes refused":    {have: []kernelRoute{route(tunnel, link, metric)}, want: []datapath.Route{refuse}, put: []kernelRoute{route(refuse, 0, metric)}},
		"refused is there":   {have: []kernelRoute{route(refuse, 0, metric)}, want: []datapath.Route{refuse}},
		"refused has no src": {have: []kernelRoute{route(refuse, 0, metric)}, want: []datapath.Route{{Dst: refuse.Dst, Src: src, Unreachable: true}}},
		"source lost":        {have: []kernelRoute{route(datapath.Route{Dst: tunnel.Dst}, link, metric)}, want: []datapath.Route{tunnel}, put: []kernelRoute{route(tunnel, link, metric)}},
		"an old metric":      {have: []kernelRoute{route(tunnel, link, 1)}, want: []datapath.Route{tunnel}, put: []kernelRoute{route(tunnel, link, metric)}, remove: []kernelRoute{route(tunnel, link, 1)}},
		"host bits":          {have: []kernelRoute{route(tunnel, link, metric)}, want: []datapath.Route{{Dst: dst("10.2.9.9/16"), Src: src}}},
		"invalid":            {want: []datapath.Route{{}, tunnel}, put: []kernelRoute{route(tunnel, link, metric)}, problem: "not an IPv4 or IPv6 prefix"},
		"family":             {want: []datapath.Route{{Dst: dst("fd00::/64"), Src: src}}, problem: "route fd00::/64: source 10.1.0.1 is of the other IP family"},
	} {
		got, problems := diff(c.have, c.want, link)
		if !slices.Equal(got.Put, c.put) || !slices.Equal(got.Remove, c.remove) {
			t.Errorf("%s: %+v", name, got)
		}
		if (c.problem == "") != (len(problems) == 0) || len(problems) > 0 && !strings.Contains(problems[0].String(), c.problem) {
			t.Errorf("%s: Problems %v, want %q", name, problems, c.problem)
		}
	}
}
