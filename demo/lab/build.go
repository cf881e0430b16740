package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"

	"strait.io/strait/internal/fabric"
)

// addRouters makes the core router and a region router per cluster. The core has routes to the
// nodes' networks but not to the pods': only a tunnel carries pods' packets between clusters.
func (l *Lab) addRouters() error {
	if err := fabric.AddNS(core); err != nil {
		return err
	}
	if err := fabric.MakeRouter(core); err != nil {
		return err
	}
	for _, c := range l.Clusters {
		ns := c.routerNS()
		if err := fabric.AddNS(ns); err != nil {
			return err
		}
		if err := fabric.MakeRouter(ns); err != nil {
			return err
		}
		if err := fabric.AddCable(fabric.End{NS: ns, Link: "core"}, fabric.End{NS: core, Link: c.Name}); err != nil {
			return err
		}
		if err := l.connect(c); err != nil {
			return err
		}
		err := fabric.WithHandle(ns, func(h *netlink.Handle) error {
			return fabric.AddBridge(h, "nodes0", netip.PrefixFrom(c.Gateway, c.Underlay.Bits()))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c Cluster) uplink() (coreSide, regionSide netip.Prefix) {
	first := c.Uplink.Addr().Next()
	return netip.PrefixFrom(first, c.Uplink.Bits()), netip.PrefixFrom(first.Next(), c.Uplink.Bits())
}

// connect configures the addresses and routes on both ends of a cluster's uplink.
func (l *Lab) connect(c Cluster) error {
	coreSide, regionSide := c.uplink()
	err := fabric.WithHandle(core, func(h *netlink.Handle) error {
		if err := fabric.AddAddr(h, c.Name, coreSide); err != nil {
			return err
		}
		return fabric.AddRoute(h, c.Underlay, regionSide.Addr())
	})
	if err != nil {
		return err
	}
	return fabric.WithHandle(c.routerNS(), func(h *netlink.Handle) error {
		if err := fabric.AddAddr(h, "core", regionSide); err != nil {
			return err
		}
		return fabric.AddRoute(h, netip.Prefix{}, coreSide.Addr())
	})
}

// Cut takes a cluster's uplink down. Its nodes still hear each other, but no other cluster.
func (l *Lab) Cut(c Cluster) error {
	return fabric.WithHandle(c.routerNS(), func(h *netlink.Handle) error { return fabric.SetDown(h, "core") })
}

// Heal undoes Cut. It adds the default route again, which disappeared with the link.
func (l *Lab) Heal(c Cluster) error {
	return fabric.WithHandle(c.routerNS(), func(h *netlink.Handle) error {
		if err := fabric.SetUp(h, "core"); err != nil {
			return err
		}
		coreSide, _ := c.uplink()
		return fabric.AddRoute(h, netip.Prefix{}, coreSide.Addr())
	})
}

// AddNode makes a node with its pods: namespaces, bridge, cables, cgroups, directories.
func (l *Lab) AddNode(c Cluster, n Node) error {
	ns := Place{Node: n.Name}.NetNS()
	children := []string{"straitd", "host"}
	for _, p := range n.Pods {
		children = append(children, "pod-"+p.Kind)
	}
	if err := fabric.MakeCgroups(l.Cgroup(n.Name), children...); err != nil {
		return err
	}
	if err := l.makeNodeDir(c, n); err != nil {
		return err
	}
	if err := fabric.AddNS(ns); err != nil {
		return err
	}
	if err := fabric.MakeRouter(ns); err != nil {
		return err
	}
	cable := fabric.End{NS: ns, Link: "eth0", MAC: fabric.MACOf(n.Underlay.Addr())}
	if err := fabric.AddCable(cable, fabric.End{NS: c.routerNS(), Link: n.Name, Bridge: "nodes0"}); err != nil {
		return err
	}
	err := fabric.WithHandle(ns, func(h *netlink.Handle) error {
		if err := fabric.AddAddr(h, "eth0", n.Underlay); err != nil {
			return err
		}
		if err := fabric.AddRoute(h, netip.Prefix{}, n.Router); err != nil {
			return err
		}
		return fabric.AddBridge(h, "pods0", netip.PrefixFrom(n.Gateway, n.PodCIDR.Bits()))
	})
	if err != nil {
		return err
	}
	// Within a cluster the network routes to pods, as with a CNI.
	err = fabric.WithHandle(c.routerNS(), func(h *netlink.Handle) error { return fabric.AddRoute(h, n.PodCIDR, n.Underlay.Addr()) })
	if err != nil {
		return err
	}
	for _, p := range n.Pods {
		if err := addPod(n, p); err != nil {
			return fmt.Errorf("make pod %s: %w", p.Name, err)
		}
	}
	return nil
}

func (l *Lab) makeNodeDir(c Cluster, n Node) error {
	for _, d := range []string{"state", "run"} {
		if err := os.MkdirAll(filepath.Join(l.NodeDir(n.Name), d), 0o700); err != nil {
			return fmt.Errorf("make directory of the node: %w", err)
		}
	}
	if err := os.WriteFile(l.resolvFile(n.Name), []byte(resolvText(c.Resolvers(n))), 0o644); err != nil {
		return fmt.Errorf("write resolv.conf of the node: %w", err)
	}
	return nil
}

func addPod(n Node, p Pod) error {
	ns := Place{n.Name, p.Kind}.NetNS()
	if err := fabric.AddNS(ns); err != nil {
		return err
	}
	node := fabric.End{NS: Place{Node: n.Name}.NetNS(), Link: "pod-" + p.Kind, Bridge: "pods0"}
	if err := fabric.AddCable(fabric.End{NS: ns, Link: "eth0"}, node); err != nil {
		return err
	}
	return fabric.WithHandle(ns, func(h *netlink.Handle) error {
		if err := fabric.AddAddr(h, "eth0", netip.PrefixFrom(p.Addr, n.PodCIDR.Bits())); err != nil {
			return err
		}
		return fabric.AddRoute(h, netip.Prefix{}, n.Gateway)
	})
}

// PowerOff kills a node without warning: its link goes down and all of its processes are killed.
// The node's kernel state stays until Remove, but no other node can see it.
func (l *Lab) PowerOff(ctx context.Context, n Node) error {
	err := fabric.WithHandle(l.cluster(n).routerNS(), func(h *netlink.Handle) error { return fabric.SetDown(h, n.Name) })
	if err != nil {
		return err
	}
	return fabric.KillCgroup(ctx, l.Cgroup(n.Name))
}

// Remove removes everything of a powered-off node but its files on disk. AddNode brings it back, as
// a machine that boots.
func (l *Lab) Remove(n Node) error {
	errs := []error{os.RemoveAll(l.Pins(n.Name)), os.RemoveAll(filepath.Join(l.NodeDir(n.Name), "run"))}
	for _, p := range n.Pods {
		errs = append(errs, fabric.RemoveNS(Place{n.Name, p.Kind}.NetNS()))
	}
	err := fabric.WithHandle(l.cluster(n).routerNS(), func(h *netlink.Handle) error {
		link, err := h.LinkByName(n.Name)
		if err != nil {
			return fmt.Errorf("find link %s: %w", n.Name, err)
		}
		return h.LinkDel(link)
	})
	errs = append(errs, err, fabric.RemoveNS(Place{Node: n.Name}.NetNS()), removeSocket(n.Device), fabric.RemoveCgroup(l.Cgroup(n.Name)))
	return errors.Join(errs...)
}
