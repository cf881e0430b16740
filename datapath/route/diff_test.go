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
	held := func(r datapath.Route, l, m int) entry { return entry{Route: r, link: l, metric: m} }
	for name, c := range map[string]struct {
		have    []entry
		want    []datapath.Route
		put     []entry
		remove  []entry
		problem string
	}{
		"new":                {want: []datapath.Route{tunnel}, put: []entry{held(tunnel, link, metric)}},
		"there":              {have: []entry{held(tunnel, link, metric)}, want: []datapath.Route{tunnel}},
		"unwanted":           {have: []entry{held(tunnel, link, metric)}, remove: []entry{held(tunnel, link, metric)}},
		"another device":     {have: []entry{held(tunnel, 6, metric)}, want: []datapath.Route{tunnel}, put: []entry{held(tunnel, link, metric)}},
		"becomes refused":    {have: []entry{held(tunnel, link, metric)}, want: []datapath.Route{refuse}, put: []entry{held(refuse, 0, metric)}},
		"refused is there":   {have: []entry{held(refuse, 0, metric)}, want: []datapath.Route{refuse}},
		"refused has no src": {have: []entry{held(refuse, 0, metric)}, want: []datapath.Route{{Dst: refuse.Dst, Src: src, Unreachable: true}}},
		"source lost":        {have: []entry{held(datapath.Route{Dst: tunnel.Dst}, link, metric)}, want: []datapath.Route{tunnel}, put: []entry{held(tunnel, link, metric)}},
		"an old metric":      {have: []entry{held(tunnel, link, 1)}, want: []datapath.Route{tunnel}, put: []entry{held(tunnel, link, metric)}, remove: []entry{held(tunnel, link, 1)}},
		"host bits":          {have: []entry{held(tunnel, link, metric)}, want: []datapath.Route{{Dst: dst("10.2.9.9/16"), Src: src}}},
		"invalid":            {want: []datapath.Route{{}, tunnel}, put: []entry{held(tunnel, link, metric)}, problem: "not an IPv4 or IPv6 prefix"},
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
