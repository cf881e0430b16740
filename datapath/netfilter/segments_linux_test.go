package netfilter_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/netfilter"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// TestSegmentsFit: whichever side calls, both learn of segments that fit into the tunnel, although
// both have devices with a larger MTU.
func TestSegmentsFit(t *testing.T) {
	p := newPath(t)
	must(t, problem.Strict(netfilter.New(netfilter.Config{Device: device}).Reconcile(sources(), false)))
	must(t, p.pod.Do(func() error { return serve(t) }))
	for _, c := range []struct {
		name   string
		device int // MTU of the pod's device
		tunnel int // MTU of the tunnel's device
		route  int // MTU of the route into the tunnel; 0 means the device's
		// What each side learns for IPv4. For IPv6 it is 20 less, the difference of the headers.
		pod, far int
	}{
		{name: "a tunnel that is not narrow", device: 1500, tunnel: 1500, pod: 1460, far: 1460},
		{name: "a tunnel", device: 1500, tunnel: 1420, pod: 1380, far: 1380},
		{name: "a tunnel that is narrower to this peer", device: 1500, tunnel: 1420, route: 1312, pod: 1272, far: 1272},
		{name: "a pod whose device is narrower still", device: 1300, tunnel: 1420, route: 1312, pod: 1272, far: 1260},
	} {
		must(t, p.pod.Do(func() error { return setMTU("eth0", c.device) }))
		must(t, setMTU(device, c.tunnel))
		must(t, narrowRoutes(device, c.route, "10.2.1.0/24", "fd00:2::/64"))
		for _, call := range []struct {
			from *testutil.Namespace
			addr string
			less int
		}{{p.pod, far4, 0}, {p.far, pod4, 0}, {p.pod, far6, 20}, {p.far, pod6, 20}} {
			if got, want := announced(t, call.from, p.pod, call.addr), c.pod-call.less; got != want {
				t.Errorf("%s: call to %s: the pod learns %d, want %d", c.name, call.addr, got, want)
			}
			if got, want := announced(t, call.from, p.far, call.addr), c.far-call.less; got != want {
				t.Errorf("%s: call to %s: the far side learns %d, want %d", c.name, call.addr, got, want)
			}
		}
	}
}

func setMTU(link string, mtu int) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return err
	}
	return netlink.LinkSetMTU(l, mtu)
}

func narrowRoutes(link string, mtu int, dsts ...string) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return err
	}
	for _, dst := range dsts {
		_, n, err := net.ParseCIDR(dst)
		if err != nil {
			return err
		}
		r := &netlink.Route{Dst: n, LinkIndex: l.Attrs().Index, Scope: netlink.SCOPE_LINK, MTU: mtu}
		if err := netlink.RouteReplace(r); err != nil {
			return err
		}
	}
	return nil
}

// announced returns the maximum segment size in the first SYN that the namespace at receives when
// from calls addr.
func announced(t *testing.T, from, at *testutil.Namespace, addr string) int {
	t.Helper()
	family := unix.AF_INET
	if net.ParseIP(addr).To4() == nil {
		family = unix.AF_INET6
	}
	var raw int
	must(t, at.Do(func() (err error) {
		raw, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
		return errors.Join(err, unix.SetsockoptTimeval(raw, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}))
	}))
	defer unix.Close(raw)
	must(t, from.Do(func() error {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(addr, "80"), 10*time.Second)
		if err != nil {
			return err
		}
		return c.Close()
	}))
	b := make([]byte, 2048)
	for {
		n, _, err := unix.Recvfrom(raw, b, 0)
		if err != nil {
			t.Fatalf("no SYN arrived: %v", err)
		}
		segment := b[:n]
		if family == unix.AF_INET { // with the IP header
			segment = segment[int(segment[0]&0xf)*4:]
		}
		if mss, err := synMSS(segment); err == nil {
			return mss
		}
	}
}

// synMSS returns the maximum segment size in a SYN.
func synMSS(segment []byte) (int, error) {
	const syn, mssOption, headerLen = 0x02, 2, 20
	if segment[13]&syn == 0 {
		return 0, errors.New("not a SYN")
	}
	options := segment[headerLen : int(segment[12]>>4)*4]
	i := slices.Index(options, mssOption) // Linux puts it first
	if i != 0 || len(options) < 4 {
		return 0, fmt.Errorf("no MSS at the start of the options % x", options)
	}
	return int(options[2])<<8 | int(options[3]), nil
}
