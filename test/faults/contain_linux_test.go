package faults

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/testutil"
)

// A node says that its pods have the addresses of another machine, and of that machine's networks. No
// machine routes them into the tunnel; the others say so, and so does the node's own status.
func TestClaimOfOthersAddresses(t *testing.T) {
	t.Parallel()
	machines := bridged(t, 2)
	victim, claims := machines[0], machines[1]
	must(t, victim.ns.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		home, _ := netlink.ParseAddr("192.168.77.5/24")
		return netlink.AddrAdd(lo, home)
	}))
	claims.config["nodePrefixes"] = []string{"10.9.2.0/24", "172.31.9.1/32", "172.31.9.0/24", "192.168.77.0/24", "128.0.0.0/3"}
	// The victim is there first: to the others, an address stays with the node that had it.
	a := victim.start(t)
	a.isReady(t)
	b := claims.start(t)
	b.isReady(t)
	a.says(t, "node c2/n1: prefixes: ", "covers", "correct its annotation strait.io/prefixes")
	b.says(t, "node c2/n1: prefixes: 172.31.9.1/32 covers 172.31.9.1, the address of node c1/n1")
	testutil.Eventually(t, patience, func() error {
		return victim.ns.Do(func() error {
			routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: 5354}, netlink.RT_FILTER_TABLE)
			var got []string
			for _, r := range routes {
				if r.Type == unix.RTN_UNICAST {
					got = append(got, fmt.Sprint(r.Dst))
				}
			}
			if err == nil && !slices.Equal(got, []string{"10.9.2.0/24"}) {
				err = fmt.Errorf("routed into the tunnel: %v", got)
			}
			return err
		})
	})
}

// From the tunnel, another cluster's node reaches the daemon's port, and no other listener of the
// node.
func TestTunnelLeadsToNoListener(t *testing.T) {
	t.Parallel()
	machines := bridged(t, 2)
	first, second := machines[0].start(t), machines[1].start(t)
	first.isReady(t)
	second.isReady(t)
	var inside string
	var l net.Listener
	must(t, machines[0].ns.Do(func() error {
		device, err := netlink.LinkByName(machines[0].config["mesh"].(tree)["device"].(string))
		if err != nil {
			return err
		}
		addrs, err := netlink.AddrList(device, netlink.FAMILY_V4)
		if err != nil || len(addrs) != 1 {
			return fmt.Errorf("the tunnel has the addresses %v: %w", addrs, err)
		}
		inside = addrs[0].IP.String()
		l, err = net.Listen("tcp", ":8080")
		return err
	}))
	defer l.Close()
	dial := func(port string, timeout time.Duration) error {
		return machines[1].ns.Do(func() error {
			c, err := net.DialTimeout("tcp", net.JoinHostPort(inside, port), timeout)
			if err == nil {
				c.Close()
			}
			return err
		})
	}
	// The daemon listens on the underlay only, so an answer through the tunnel is a refusal.
	testutil.Eventually(t, patience, func() error {
		if err := dial("7946", time.Second); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
			return err
		}
		return nil
	})
	if err := dial("8080", time.Second); err == nil {
		t.Errorf("a listener of the node answers at %s through the tunnel", inside)
	}
}
