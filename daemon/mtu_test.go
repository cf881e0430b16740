package daemon

import (
	"net/netip"
	"testing"

	"strait.io/strait/datapath"
)

func TestFit(t *testing.T) {
	first, second, third := netip.MustParsePrefix("10.1.0.0/24"), netip.MustParsePrefix("10.2.0.0/24"), netip.MustParsePrefix("fd00:2::/64")
	peers := []datapath.Peer{{AllowedIPs: []netip.Prefix{first}}, {AllowedIPs: []netip.Prefix{second, third}}}
	for name, c := range map[string]struct {
		peers     []datapath.Peer
		underlays []int
		want      sizes
	}{
		"no peers":                         {nil, nil, sizes{device: 1420}},
		"no underlay is known":             {peers, []int{0, 0}, sizes{device: 1420}},
		"all alike":                        {peers, []int{1450, 1450}, sizes{device: 1370}},
		"jumbo frames are not believed":    {peers, []int{9000, 1500}, sizes{device: 1420}},
		"one is narrow":                    {peers, []int{1500, 1400}, sizes{1420, map[netip.Prefix]int{second: 1312, third: 1312}}},
		"one is a little narrower":         {peers, []int{1419, 1420}, sizes{1340, map[netip.Prefix]int{first: 1328}}},
		"one is unknown":                   {peers, []int{0, 1400}, sizes{device: 1320}},
		"one is too narrow for IPv6":       {peers, []int{1500, 576}, sizes{1420, map[netip.Prefix]int{second: 1280, third: 1280}}},
		"all are too narrow for IPv6":      {peers, []int{1300, 576}, sizes{device: 1280}},
		"one is narrow, another is jumbo":  {peers, []int{1400, 9000}, sizes{1420, map[netip.Prefix]int{first: 1312}}},
		"one is narrow, another has none ": {peers, []int{1400, 0}, sizes{device: 1320}},
	} {
		if got := fit(c.peers, c.underlays); !got.equal(c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestRoutesGetTheirSizes(t *testing.T) {
	narrow, wide := netip.MustParsePrefix("10.1.0.0/24"), netip.MustParsePrefix("10.2.0.0/24")
	planned := []datapath.Route{{Dst: narrow}, {Dst: wide}, {Dst: netip.MustParsePrefix("241.0.0.0/8"), Unreachable: true}}
	got := sizes{1420, map[netip.Prefix]int{narrow: 1312}}.routes(planned)
	for i, want := range []int{1312, 0, 0} {
		if got[i].MTU != want || got[i].Dst != planned[i].Dst || got[i].Unreachable != planned[i].Unreachable {
			t.Errorf("%+v becomes %+v, want an MTU of %d", planned[i], got[i], want)
		}
	}
	if planned[0].MTU != 0 {
		t.Error("the plan was changed")
	}
	if same := (sizes{device: 1420}).routes(planned); &same[0] != &planned[0] {
		t.Error("the routes were copied although no peer is narrow")
	}
}
