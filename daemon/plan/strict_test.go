package plan_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/daemon/plan"
)

// TestRemoteRangesAreClosed: what of another cluster's pods no tunnel leads to is unreachable. A range
// that covers anything else is not.
func TestRemoteRangesAreClosed(t *testing.T) {
	for _, c := range []struct {
		name, remote string
		off          bool
		want, says   string
	}{
		{"their pods", "10.2.0.0/16", false, "10.2.0.0/16", ""},
		{"a peer's own prefix", "10.2.1.0/24", false, "", ""},
		{"no pods yet", "10.77.0.0/16", false, "10.77.0.0/16", ""},
		{"without a mesh", "10.2.0.0/16", true, "", ""},
		{"ours", "10.0.0.0/12", false, "", "overlaps 10.1."},
		{"the underlay", "172.31.0.0/16", false, "", "172.31."},
		{"in our network", "192.168.60.0/25", false, "192.168.60.0/25", ""},
		{"our network", "192.168.60.0/24", false, "", "192.168.60"},
		{"an address of this machine", "192.168.50.0/24", false, "", "192.168.50.7"},
		{"everything", "0.0.0.0/1", false, "", "10."},
	} {
		s := clusterset()
		p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{Mesh: !c.off})
		p.Host = plan.Host{
			Addrs:     []netip.Addr{netip.MustParseAddr("172.31.1.1"), netip.MustParseAddr("192.168.50.7")},
			Connected: []netip.Prefix{netip.MustParsePrefix("192.168.60.0/24")},
		}
		before := p.plan(s)
		p.Remotes = []plan.Remote{{Cluster: "b", Range: netip.MustParsePrefix(c.remote)}}
		r := p.plan(s)
		var closed []string
		for _, rt := range r.Desired.Routes {
			if rt.Unreachable {
				closed = append(closed, rt.Dst.String())
			}
		}
		if got := strings.Join(closed, " "); got != c.want {
			t.Errorf("%s: unreachable %q, want %q", c.name, got, c.want)
		}
		if got := routed(r); !slices.Equal(got, routed(before)) {
			t.Errorf("%s: routes %v, without it %v", c.name, got, routed(before))
		}
		found := forbidden(r)
		if (len(found) > 0) != (c.says != "") || len(found) > 0 && (!strings.Contains(found[0].Message, c.says) || !found[0].Warning) {
			t.Errorf("%s: problems %v, want one with %q", c.name, found, c.says)
		}
	}
}
