package many

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"strait.io/strait/internal/fabric"
	"strait.io/strait/internal/testutil"
)

// core is the router between the clusters. Each cluster has one of its own, which is named like it.
const core = "core"

// cable makes the machines and the network between them. A router has a network of two addresses to each of its
// machines: on a common one, each would hold the hardware address of each, and the kernel has room for
// 1,024 of all namespaces together.
//
// Namespaces have names only in a /run of this process's own, so that those of other labs do not matter.
func (f *fleet) cable() {
	f.Helper()
	f.must(syscall.Mount("tmpfs", "/run", "tmpfs", 0, "size=1m"), fabric.AddNS(core), fabric.MakeRouter(core))
	bpf := f.file("bpf")
	f.must(os.MkdirAll(bpf, 0o700), syscall.Mount("bpffs", bpf, "bpf", 0, "mode=0700"))
	f.Cleanup(func() {
		if err := fabric.Unmount(bpf); err != nil {
			f.Error(err)
		}
	})
	for _, c := range f.clusters {
		f.must(fabric.AddNS(c.name), fabric.MakeRouter(c.name))
		f.must(fabric.AddCable(fabric.End{NS: core, Link: c.name}, fabric.End{NS: c.name, Link: core}))
		there, here := c.uplink()
		f.must(address(core, c.name, there), address(c.name, core, here), route(core, c.underlay(), here.Addr()))
		f.must(route(c.name, netip.Prefix{}, there.Addr()))
		for _, n := range c.nodes {
			f.must(fabric.MakeCgroups(n.cgroup()), fabric.AddNS(n.netns()))
			f.must(fabric.AddCable(fabric.End{NS: c.name, Link: n.name()}, fabric.End{NS: n.netns(), Link: "eth0"}))
			f.must(address(c.name, n.name(), n.uplink), address(n.netns(), "eth0", netip.PrefixFrom(n.addr(), 30)))
			f.must(route(n.netns(), netip.Prefix{}, n.uplink.Addr()))
		}
	}
}

// uplink is the network between the core and a cluster's router, at both ends.
func (c *cluster) uplink() (there, here netip.Prefix) {
	there = netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 30, c.index, 1}), 30)
	return there, netip.PrefixFrom(there.Addr().Next(), 30)
}

// underlay has the addresses of a cluster's machines.
func (c *cluster) underlay() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, c.index, 0}), 24)
}

func (n *node) cgroup() string { return filepath.Join(testutil.InsideCgroup(), n.netns()) }

func address(ns, link string, addr netip.Prefix) error {
	return fabric.WithHandle(ns, func(h *netlink.Handle) error { return fabric.AddAddr(h, link, addr) })
}

func route(ns string, to netip.Prefix, via netip.Addr) error {
	return fabric.WithHandle(ns, func(h *netlink.Handle) error { return fabric.AddRoute(h, to, via) })
}

func inside(ns string, f func() error) error { return fabric.InsideNamed(ns, f) }

// cut lets a cluster reach no other, until heal.
func (c *cluster) cut() {
	c.f.must(fabric.WithHandle(c.name, func(h *netlink.Handle) error { return fabric.SetDown(h, core) }))
}

func (c *cluster) heal() {
	there, _ := c.uplink()
	c.f.must(fabric.WithHandle(c.name, func(h *netlink.Handle) error { return fabric.SetUp(h, core) }))
	c.f.must(route(c.name, netip.Prefix{}, there.Addr())) // it disappeared with the link
}

// unplug takes a machine off the network, until plug.
func (n *node) unplug() {
	n.f.must(fabric.WithHandle(n.cluster.name, func(h *netlink.Handle) error { return fabric.SetDown(h, n.name()) }))
}

func (n *node) plug() {
	n.f.must(fabric.WithHandle(n.cluster.name, func(h *netlink.Handle) error { return fabric.SetUp(h, n.name()) }))
}

// watchers raises how many programs may follow files, which is for all of the machine. Each daemon is one.
func watchers(t *testing.T, atLeast int) {
	t.Helper()
	const limit = "/proc/sys/fs/inotify/max_user_instances"
	text, err := os.ReadFile(limit)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || n >= atLeast {
		return
	}
	if err := os.WriteFile(limit, fmt.Append(nil, atLeast), 0); err != nil {
		t.Fatal(err)
	}
	back := func() {
		if err := os.WriteFile(limit, text, 0); err != nil {
			t.Error(err)
		}
	}
	forget := testutil.AtInterrupt(back)
	t.Cleanup(func() {
		forget()
		back()
	})
}
