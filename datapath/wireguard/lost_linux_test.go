package wireguard_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"strait.io/strait/datapath/route"
	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/testutil"
)

// TestLostDevice: whatever another program does to the device, the next Reconcile makes it as it was, and
// what it can keep it keeps.
func TestLostDevice(t *testing.T) { eachMode(t, testLostDevice) }

func testLostDevice(t *testing.T, mode wireguard.Kind) {
	a, b := pair(t, mode)
	kept := a.connect(t, b.pod)
	for _, c := range []struct {
		name   string
		breaks func(l netlink.Link) error
		keeps  bool // its sessions, so that nothing need be made again
	}{
		{"deleted", netlink.LinkDel, false},
		{"deleted again", netlink.LinkDel, false},
		{"set down", netlink.LinkSetDown, true},
		{"renamed", func(l netlink.Link) error { return rename(l, "other0") }, true},
		{"renamed and set up", func(l netlink.Link) error {
			if err := rename(l, "other0"); err != nil {
				return err
			}
			return netlink.LinkSetUp(l)
		}, true},
		{"another MTU", func(l netlink.Link) error { return netlink.LinkSetMTU(l, 1300) }, true},
		{"another key", a.configure(func(c *wgtypes.Config) { c.PrivateKey = &wgtypes.Key{1} }), false},
		{"another port", a.configure(func(c *wgtypes.Config) { c.ListenPort = new(int); *c.ListenPort = 30001 }), true},
		{"another mark", a.configure(func(c *wgtypes.Config) { c.FirewallMark = new(int) }), true},
		{"no peers", a.configure(func(c *wgtypes.Config) { c.ReplacePeers = true }), true},
		{"a preshared key", a.configure(func(c *wgtypes.Config) {
			c.Peers = []wgtypes.PeerConfig{{PublicKey: wgtypes.Key(b.private.Public()), PresharedKey: &wgtypes.Key{1}}}
		}), true},
		{"another endpoint", a.configure(func(c *wgtypes.Config) {
			c.Peers = []wgtypes.PeerConfig{{PublicKey: wgtypes.Key(b.private.Public()), Endpoint: &net.UDPAddr{IP: net.IPv4(192, 168, 7, 99), Port: 9}}}
		}), true},
		{"no allowed IPs", a.configure(func(c *wgtypes.Config) {
			c.Peers = []wgtypes.PeerConfig{{PublicKey: wgtypes.Key(b.private.Public()), ReplaceAllowedIPs: true}}
		}), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a.quiet(t)
			a.reconcile(t, b) // a look at how it is
			made := a.dev.Made()
			must(t, a.Do(func() error {
				l, err := netlink.LinkByName(a.cfg.Device)
				if err != nil {
					return err
				}
				return c.breaks(l)
			}))
			a.reconcile(t, b)
			must(t, a.Do(func() error {
				l, err := netlink.LinkByName(a.cfg.Device)
				if err == nil && l.Attrs().MTU != a.cfg.MTU {
					t.Errorf("MTU %d, want %d", l.Attrs().MTU, a.cfg.MTU)
				}
				return err
			}))
			peers, err := a.dev.Peers()
			must(t, err)
			if len(peers) != 1 || peers[0].Altered || peers[0].Underlay != b.underlay || len(peers[0].AllowedIPs) != 2 {
				t.Errorf("peers: %+v", peers)
			}
			if kept := a.dev.Made() == made; kept != c.keeps {
				t.Errorf("kept %v, want %v", kept, c.keeps)
			}
			must(t, a.connect(t, b.pod).echo("works again"))
			must(t, kept.echo("an old connection goes on"))
		})
	}
}

// TestForeignDevice: a device of the name that is not WireGuard's is refused by name, and left as it is. Once
// it is gone, the tunnel comes back.
func TestForeignDevice(t *testing.T) { eachMode(t, testForeignDevice) }

func testForeignDevice(t *testing.T, mode wireguard.Kind) {
	a, b := pair(t, mode)
	for _, renamed := range []bool{false, true} {
		foreign := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: a.cfg.Device, MTU: 1234}}
		must(t, a.Do(func() error {
			l, err := netlink.LinkByName(a.cfg.Device)
			if err != nil {
				return err
			}
			if renamed {
				err = rename(l, "other1")
			} else {
				err = netlink.LinkDel(l)
			}
			if err != nil {
				return err
			}
			return netlink.LinkAdd(foreign)
		}))
		want, routes := wanted(a, b)
		must(t, a.Do(func() error {
			_, err := a.dev.Reconcile(want, true)
			if err == nil || !strings.Contains(err.Error(), `device `+a.cfg.Device+` is of kind "bridge"`) || !strings.Contains(err.Error(), "ip link delete") {
				t.Errorf("Reconcile: %v", err)
			}
			if _, err := a.router.Reconcile(routes, true); err == nil || !strings.Contains(err.Error(), "bridge") {
				t.Errorf("the router: %v", err)
			}
			l, err := netlink.LinkByName(a.cfg.Device)
			if err != nil {
				return err
			}
			addrs, err := netlink.AddrList(l, netlink.FAMILY_V4)
			if l.Type() != "bridge" || l.Attrs().MTU != 1234 || l.Attrs().Flags&net.FlagUp != 0 || len(addrs) != 0 {
				t.Errorf("the foreign device was changed: %+v %v", l.Attrs(), addrs)
			}
			return err
		}))
		must(t, a.Do(func() error { return netlink.LinkDel(foreign) }))
		a.reconcile(t, b)
		must(t, a.connect(t, b.pod).echo("works again"))
	}
}

// TestRenamedWithoutDaemon: no process knows the device that was renamed, and its process still serves it.
func TestRenamedWithoutDaemon(t *testing.T) {
	testutil.NeedTun(t)
	a, b := pair(t, wireguard.Userspace)
	must(t, a.dev.Close())
	a.router = route.New(route.Config{Device: a.cfg.Device})
	must(t, a.Do(func() error {
		l, err := netlink.LinkByName(a.cfg.Device)
		if err != nil {
			return err
		}
		return rename(l, "other0")
	}))
	a.open(t, b)
	must(t, a.connect(t, b.pod).echo("works again"))
}

// quiet waits until no more packets come: a peer that is heard can have roamed.
func (n *node) quiet(t *testing.T) {
	t.Helper()
	last := int64(-1)
	testutil.Eventually(t, 30*time.Second, func() error {
		peers, err := n.dev.Peers()
		if err != nil || len(peers) != 1 {
			return fmt.Errorf("peers: %v %w", peers, err)
		}
		if now := peers[0].Received; now != last {
			last = now
			time.Sleep(300 * time.Millisecond)
			return errors.New("packets still come")
		}
		return nil
	})
}

func rename(l netlink.Link, name string) error {
	if err := netlink.LinkSetDown(l); err != nil {
		return err
	}
	return netlink.LinkSetName(l, name)
}

// configure changes the device as wg does.
func (n *node) configure(change func(*wgtypes.Config)) func(netlink.Link) error {
	return func(netlink.Link) error {
		c, err := wgctrl.New()
		if err != nil {
			return err
		}
		defer c.Close()
		var cfg wgtypes.Config
		change(&cfg)
		return c.ConfigureDevice(n.cfg.Device, cfg)
	}
}
