package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/socklb"
)

// place holds the cgroups and namespaces in which the measurements happen. A socket always belongs
// to the cgroup and the network namespace in which it was opened. So the sockets of all sides are
// opened first, each side's in its own place, and then one thread uses them in turn.
type place struct {
	// dir is a scratch directory, pins a bpffs below it.
	dir, pins string
	// home is this process's cgroup, without programs. served has strait's programs, unserved none,
	// cilium and untraced Cilium's, empty has programs that do nothing, lookup one that looks up one
	// key, and floor the smallest one that balances. optedOut has no processes and is as deep as served.
	home, served, unserved, cilium, untraced, empty, lookup, floor, optedOut string
	// plain has no netfilter; proxied has kube-proxy's rules.
	plain, proxied netns.NsHandle
}

// newPlace sets up the places. It locks the calling goroutine to its thread, which stays in the
// plain namespace.
func newPlace() (*place, error) {
	runtime.LockOSThread()
	top := os.Getenv(cgroupEnv)
	p := &place{
		dir: os.Getenv(dirEnv), home: top,
		served: filepath.Join(top, "served"), unserved: filepath.Join(top, "unserved"),
		cilium: filepath.Join(top, "cilium"), untraced: filepath.Join(top, "untraced"),
		empty: filepath.Join(top, "empty"), lookup: filepath.Join(top, "lookup"), floor: filepath.Join(top, "floor"), optedOut: filepath.Join(top, "opted-out"),
	}
	for _, dir := range []string{p.served, p.unserved, p.cilium, p.untraced, p.empty, p.lookup, p.floor, p.optedOut} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	p.pins = pinsIn(p.dir)
	if err := os.Mkdir(p.pins, 0o700); err != nil {
		return nil, err
	}
	// This process has its own mount namespace, and the mount disappears with it.
	if err := privateMounts(); err != nil {
		return nil, err
	}
	if err := unix.Mount("bpffs", p.pins, "bpf", 0, ""); err != nil {
		return nil, fmt.Errorf("mount a bpffs: %w", err)
	}
	return p, p.namespaces()
}

func (p *place) namespaces() (err error) {
	if p.plain, err = netns.Get(); err != nil {
		return fmt.Errorf("open network namespace: %w", err)
	}
	if err := addresses(); err != nil {
		return err
	}
	p.proxied, err = p.namespace()
	return err
}

// namespace makes another namespace with the same addresses.
func (p *place) namespace() (netns.NsHandle, error) {
	ns, err := netns.New()
	if err != nil {
		return ns, fmt.Errorf("make network namespace: %w", err)
	}
	return ns, errors.Join(addresses(), netns.Set(p.plain))
}

// addresses makes every pod's address local and adds a route for the frontends: without one a
// packet would not reach kube-proxy's rules. The client's address is in the pods' range, so that it
// is not masqueraded.
func addresses() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	client := &netlink.Addr{IPNet: netlink.NewIPNet(clientIP.AsSlice())}
	if err := netlink.AddrAdd(lo, client); err != nil {
		return fmt.Errorf("add address %s: %w", clientIP, err)
	}
	for _, r := range []struct {
		dst  netip.Prefix
		kind int
	}{{podRange, unix.RTN_LOCAL}, {podRange6, unix.RTN_LOCAL}, {serviceRange, unix.RTN_UNICAST}} {
		route := &netlink.Route{LinkIndex: lo.Attrs().Index, Dst: netlink.NewIPNet(r.dst.Addr().AsSlice()), Type: r.kind}
		if r.kind == unix.RTN_LOCAL {
			route.Table, route.Scope = unix.RT_TABLE_LOCAL, netlink.SCOPE_HOST
		}
		if r.dst.Addr().Is4() {
			route.Src = clientIP.AsSlice()
		}
		route.Dst.Mask = mask(r.dst)
		if err := netlink.RouteAdd(route); err != nil {
			return fmt.Errorf("add route %s: %w", r.dst, err)
		}
	}
	return nil
}

// enter moves this process into a cgroup. Existing sockets stay in theirs.
func enter(cgroup string) error {
	if err := os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte("0"), 0); err != nil {
		return fmt.Errorf("enter cgroup: %w", err)
	}
	return nil
}

// in calls f in a cgroup and then returns to home.
func (p *place) in(cgroup string, f func() error) error {
	if err := enter(cgroup); err != nil {
		return err
	}
	return errors.Join(f(), enter(p.home))
}

// inside calls f in a namespace.
func (p *place) inside(ns netns.NsHandle, f func() error) error {
	if err := netns.Set(ns); err != nil {
		return err
	}
	return errors.Join(f(), netns.Set(p.plain))
}

// balancer opens strait on a cgroup. Map sizes that cfg does not set are the daemon's defaults. The
// returned function closes it and removes its pins.
func (p *place) balancer(name, cgroup string, cfg socklb.Config) (*socklb.LB, func() error, error) {
	cfg.Pins, cfg.Cgroup, cfg.AllowVirtualRoot = filepath.Join(p.pins, name), cgroup, true
	lb, err := socklb.Open(cfg)
	if err != nil {
		return nil, nil, err
	}
	return lb, func() error { return errors.Join(lb.Close(), socklb.CleanUp(cfg)) }, nil
}
