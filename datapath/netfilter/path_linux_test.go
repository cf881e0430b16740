package netfilter_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/testutil"
)

const (
	device     = "strait0"
	pod4, pod6 = "10.1.1.10", "fd00:1::10"
	far4, far6 = "10.2.1.10", "fd00:2::10"
	// nodeInside is the node's address in the pod network, nodeOuter what it has on the device that stands for
	// the tunnel: the address that masquerading chooses.
	nodeInside             = "10.1.1.1"
	nodeOuter4, nodeOuter6 = "172.31.1.1", "fd00:31::1"
)

// path is pod – node – far, each a namespace. The test's thread is in node. A veth stands for the tunnel.
type path struct{ pod, node, far *testutil.Namespace }

func newPath(t *testing.T) *path {
	t.Helper()
	far, pod, node := namespace(t), namespace(t), namespace(t)
	for _, f := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
		must(t, os.WriteFile("/proc/sys/net/"+f, []byte("1"), 0)) // that of this thread's namespace
	}
	cable(t, "cni0", pod)
	cable(t, device, far)
	noNeighbours(t, device, far)
	addresses(t, "cni0", nodeInside+"/24", "fd00:1::1/64")
	addresses(t, device, nodeOuter4+"/32", nodeOuter6+"/128")
	routes(t, device, "10.2.1.0/24", "fd00:2::/64")
	must(t, pod.Do(func() error {
		addresses(t, "eth0", pod4+"/24", pod6+"/64")
		routesVia(t, "eth0", nodeInside, "fd00:1::1")
		return nil
	}))
	must(t, far.Do(func() error {
		addresses(t, "eth0", far4+"/32", far6+"/128")
		routes(t, "eth0", nodeOuter4+"/32", nodeOuter6+"/128")
		routesVia(t, "eth0", nodeOuter4, nodeOuter6)
		return serve(t)
	}))
	return &path{pod: pod, node: node, far: far}
}

// namespace without the second's wait for a link's IPv6 address to be proved unique.
func namespace(t *testing.T) *testutil.Namespace {
	t.Helper()
	ns := testutil.NetNS(t)
	must(t, os.WriteFile("/proc/sys/net/ipv6/conf/default/accept_dad", []byte("0"), 0))
	return ns
}

// cable connects the calling thread's namespace with another, where its end is eth0.
func cable(t *testing.T, name string, to *testutil.Namespace) {
	t.Helper()
	must(t, netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "eth0", PeerNamespace: netlink.NsFd(to.FD()),
	}))
}

// noNeighbours makes a cable like a tunnel in which no end asks for neighbours: its ends have one
// hardware address.
func noNeighbours(t *testing.T, name string, to *testutil.Namespace) {
	t.Helper()
	quiet := func(name string) error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return errors.Join(netlink.LinkSetHardwareAddr(l, net.HardwareAddr{2, 0, 0, 0, 0, 1}), netlink.LinkSetARPOff(l))
	}
	must(t, quiet(name))
	must(t, to.Do(func() error { return quiet("eth0") }))
}

func addresses(t *testing.T, link string, addrs ...string) {
	l, err := netlink.LinkByName(link)
	must(t, err)
	must(t, netlink.LinkSetUp(l))
	for _, s := range addrs {
		a, err := netlink.ParseAddr(s)
		must(t, err)
		if a.IP.To4() == nil {
			a.Flags = unix.IFA_F_NODAD
		}
		must(t, netlink.AddrAdd(l, a))
	}
}

func routes(t *testing.T, link string, dsts ...string) {
	l, err := netlink.LinkByName(link)
	must(t, err)
	for _, dst := range dsts {
		_, n, err := net.ParseCIDR(dst)
		must(t, err)
		must(t, netlink.RouteAdd(&netlink.Route{Dst: n, LinkIndex: l.Attrs().Index, Scope: netlink.SCOPE_LINK}))
	}
}

func routesVia(t *testing.T, link string, gateways ...string) {
	l, err := netlink.LinkByName(link)
	must(t, err)
	for _, gw := range gateways {
		must(t, netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(gw), LinkIndex: l.Attrs().Index}))
	}
}

// serve tells each client on port 80 which address it has.
func serve(t *testing.T) error {
	l, err := net.Listen("tcp", ":80")
	if err != nil {
		return err
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, netip.MustParseAddrPort(c.RemoteAddr().String()).Addr().Unmap().String())
			c.Close()
		}
	}()
	return nil
}

// sees fails unless the far side sees a call of the pod come from want.
func (p *path) sees(t *testing.T, far, want string) {
	t.Helper()
	var got []byte
	err := p.pod.Do(func() error {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(far, "80"), 10*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			return err
		}
		got, err = io.ReadAll(c)
		return err
	})
	if err != nil || string(got) != want {
		t.Errorf("%s sees the pod as %q (%v), want %s", far, got, err, want)
	}
}

// mark puts a chain into strait's table, which goes when the table is written again.
func mark(t *testing.T) {
	t.Helper()
	var c nftables.Conn
	c.AddChain(&nftables.Chain{Name: "mark", Table: &nftables.Table{Name: "strait", Family: nftables.TableFamilyINet}})
	must(t, c.Flush())
}

func marked(t *testing.T) bool {
	t.Helper()
	var c nftables.Conn
	chains, err := c.ListChainsOfTableFamily(nftables.TableFamilyINet)
	must(t, err)
	return slices.ContainsFunc(chains, func(c *nftables.Chain) bool { return c.Name == "mark" })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
