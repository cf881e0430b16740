package wireguard_test

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"strait.io/strait/datapath/route"
	"strait.io/strait/datapath/wireguard"
)

// TestTunnelNeverEntersItself: a route in strait's table that covers the underlay, however it came
// there, does not lead the tunnel's own packets into the tunnel.
func TestTunnelNeverEntersItself(t *testing.T) {
	eachMode(t, func(t *testing.T, mode wireguard.Kind) {
		nodes := newNodes(t, 2, mode)
		for i, n := range nodes {
			// Strict filtering drops what comes from where the routes do not lead; see
			// docs/decisions/datapath.md.
			must(t, n.Do(func() error {
				for _, dev := range []string{"all", "eth0"} {
					if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+dev+"/rp_filter", []byte("2"), 0); err != nil {
						return err
					}
				}
				return nil
			}))
			n.open(t, nodes[1-i])
			must(t, n.Do(func() error { return routeByHand(n.cfg.Device, "192.168.7.0/24") }))
			n.echo(t)
		}
		for i, n := range nodes {
			c, err := n.dial(nodes[1-i].pod, 10*time.Second)
			must(t, err)
			must(t, c.echo("past the table"))
			c.Close()
		}
	})
}

// routeByHand puts a route into strait's table that strait did not put.
func routeByHand(device, dst string) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	_, to, err := net.ParseCIDR(dst)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{Dst: to, LinkIndex: link.Attrs().Index, Table: route.DefaultTable, Scope: netlink.SCOPE_LINK})
}
