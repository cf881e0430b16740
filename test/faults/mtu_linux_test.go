package faults

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"strait.io/strait/internal/testutil"
)

// Pods have devices with an MTU of 1500, and tunnels less. The way to one machine is narrower than
// the others, and only the other machines know it. All ICMP errors are dropped. TCP works all the
// same, in both directions. Packets to each peer are as large as its underlay allows, and follow the
// underlay when it changes.
func TestTCPNeedsNoICMP(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("nft"); err != nil {
		testutil.Missing(t, "needs nft: install the package nftables")
	}
	machines := bridged(t, 3)
	first, second, narrow := machines[0], machines[1], machines[2]
	must(t, setMTU("port3", 1400)) // the bridge's end of the cable, which drops larger packets
	for _, m := range machines[:2] {
		must(t, m.ns.Do(func() error { return underlayMTU(1400, narrow.addr()) }))
	}
	pods := map[*machine]*testutil.Namespace{}
	var running []*process
	for i, m := range machines {
		m.config["nodePrefixes"] = []string{fmt.Sprintf("10.9.%d.0/24", i+1), fmt.Sprintf("fd00:9:%d::/64", i+1)}
		pods[m] = m.routedPod(t)
		must(t, m.ns.Do(dropICMPErrors))
		running = append(running, m.start(t))
	}
	for _, p := range running {
		p.isReady(t)
	}
	first.eventuallyRoutes(t, "10.9.2.0/24 mtu 0", "10.9.3.0/24 mtu 1312", "fd00:9:2::/64 mtu 0", "fd00:9:3::/64 mtu 1312")
	for _, call := range []struct{ from, to *machine }{{first, second}, {first, narrow}, {narrow, first}} {
		for _, addr := range call.to.podAddrs() {
			if err := transfer(pods[call.from], pods[call.to], addr); err != nil {
				t.Errorf("c%d to %s: %v", call.from.number, addr, err)
			}
		}
	}

	must(t, first.ns.Do(func() error { return underlayMTU(1400, second.addr()) }))
	first.eventuallyRoutes(t, "10.9.2.0/24 mtu 0", "10.9.3.0/24 mtu 0", "fd00:9:2::/64 mtu 0", "fd00:9:3::/64 mtu 0")
	must(t, first.ns.Do(func() error { return underlayMTU(1450, second.addr()) }))
	first.eventuallyRoutes(t, "10.9.2.0/24 mtu 0", "10.9.3.0/24 mtu 1312", "fd00:9:2::/64 mtu 0", "fd00:9:3::/64 mtu 1312")
}

func setMTU(link string, mtu int) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return err
	}
	return netlink.LinkSetMTU(l, mtu)
}

// underlayMTU sets the MTU of the route to an address.
func underlayMTU(mtu int, to string) error {
	eth0, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	dst := &net.IPNet{IP: net.ParseIP(to).To4(), Mask: net.CIDRMask(32, 32)}
	return netlink.RouteReplace(&netlink.Route{Dst: dst, LinkIndex: eth0.Attrs().Index, Scope: netlink.SCOPE_LINK, MTU: mtu})
}

// dropICMPErrors makes the machine send none: no router tells a sender that a packet is too big.
func dropICMPErrors() error {
	nft := exec.Command("nft", "-f", "-")
	nft.Stdin = strings.NewReader(`table inet firewall {
		chain output { type filter hook output priority -300; meta l4proto icmp drop; icmpv6 type < 128 drop; }
	}`)
	if out, err := nft.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, out)
	}
	return nil
}

func (m *machine) podAddrs() []netip.Addr {
	return []netip.Addr{
		netip.AddrFrom4([4]byte{10, 9, byte(m.number), 10}), netip.MustParseAddr(fmt.Sprintf("fd00:9:%d::10", m.number)),
	}
}

// routedPod makes a namespace with a pod's addresses, behind the machine.
func (m *machine) routedPod(t *testing.T) *testutil.Namespace {
	t.Helper()
	pod := aside(t)
	gateways := []string{fmt.Sprintf("10.9.%d.1/24", m.number), fmt.Sprintf("fd00:9:%d::1/64", m.number)}
	must(t, m.ns.Do(func() error {
		for _, f := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
			if err := os.WriteFile("/proc/sys/net/"+f, []byte("1"), 0); err != nil {
				return err
			}
		}
		err := netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: "pod0"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(pod.FD()),
		})
		return errors.Join(err, addresses("pod0", gateways...))
	}))
	must(t, pod.Do(func() error {
		v4, v6 := m.podAddrs()[0], m.podAddrs()[1]
		if err := addresses("eth0", v4.String()+"/24", v6.String()+"/64"); err != nil {
			return err
		}
		for _, g := range gateways {
			if err := netlink.RouteAdd(&netlink.Route{Gw: netip.MustParsePrefix(g).Addr().AsSlice()}); err != nil {
				return err
			}
		}
		return nil
	}))
	return pod
}

func addresses(link string, addrs ...string) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return err
	}
	// Otherwise the kernel proves for a second that an IPv6 address is unique.
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+link+"/accept_dad", []byte("0"), 0); err != nil {
		return err
	}
	for _, s := range addrs {
		a, err := netlink.ParseAddr(s)
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(l, a); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(l)
}

// eventuallyRoutes waits until strait's table has these routes into the tunnel.
func (m *machine) eventuallyRoutes(t *testing.T, want ...string) {
	t.Helper()
	testutil.Eventually(t, patience, func() error {
		return m.ns.Do(func() error {
			var got []string
			for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
				routes, err := netlink.RouteListFiltered(family, &netlink.Route{Table: 5354}, netlink.RT_FILTER_TABLE)
				if err != nil {
					return err
				}
				for _, r := range routes {
					if r.Dst != nil && (strings.HasPrefix(r.Dst.String(), "10.9.") || strings.HasPrefix(r.Dst.String(), "fd00:9:")) {
						got = append(got, fmt.Sprintf("%s mtu %d", r.Dst, r.MTU))
					}
				}
			}
			if strings.Join(got, ", ") != strings.Join(want, ", ") {
				return fmt.Errorf("c%d routes %q, want %q", m.number, got, want)
			}
			return nil
		})
	})
}

// transfer sends 4 MiB from one namespace to an address in another, and as much back.
func transfer(from, to *testutil.Namespace, addr netip.Addr) error {
	const size = 4 << 20
	deadline := time.Now().Add(10 * time.Second)
	var l net.Listener
	err := to.Do(func() (err error) {
		l, err = net.Listen("tcp", netip.AddrPortFrom(addr, 5201).String())
		return err
	})
	if err != nil {
		return err
	}
	defer l.Close()
	server := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			server <- err
			return
		}
		defer c.Close()
		server <- errors.Join(c.SetDeadline(deadline), receive(c, size), send(c, size))
	}()
	var c net.Conn
	err = from.Do(func() (err error) {
		c, err = net.DialTimeout("tcp", l.Addr().String(), time.Until(deadline))
		return err
	})
	if err != nil {
		return err
	}
	defer c.Close()
	err = errors.Join(c.SetDeadline(deadline), send(c, size), receive(c, size))
	return errors.Join(err, <-server)
}

func send(c net.Conn, size int) error {
	n, err := c.Write(make([]byte, size))
	if err != nil {
		return fmt.Errorf("%d of %d bytes were taken: %w", n, size, err)
	}
	return nil
}

func receive(c net.Conn, size int64) error {
	n, err := io.CopyN(io.Discard, c, size)
	if err != nil {
		return fmt.Errorf("%d of %d bytes arrived: %w", n, size, err)
	}
	return nil
}
