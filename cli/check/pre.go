package check

import (
	"fmt"
	"slices"
	"strings"

	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath"
)

// minUnderlay is the smallest MTU of a link whose tunnel still takes the packets that IPv6 demands
// (RFC 8200, section 5): 1280, and 80 for WireGuard.
const minUnderlay = 1360

// Pre makes the checks of machines on which strait is not installed yet.
func Pre(machines []api.NodeFacts) []Check {
	p := preChecker{machines: machines}
	p.kernel()
	p.system()
	p.network()
	return p.checks
}

type preChecker struct {
	checker
	machines []api.NodeFacts
}

// all collects what is found on each machine.
func (p *preChecker) all(find func(f *api.NodeFacts) []Finding) (out []Finding) {
	for i := range p.machines {
		for _, f := range find(&p.machines[i]) {
			f.Nodes = []string{p.machines[i].Node}
			out = append(out, f)
		}
	}
	return out
}

func (p *preChecker) kernel() {
	p.add("kernel", "it has every feature that strait can use", p.all(func(f *api.NodeFacts) []Finding {
		if f.FeaturesError != "" {
			return found(Unknown, "run it as root, with all capabilities", "Linux %s could not be asked: %s", f.Kernel, f.FeaturesError)
		}
		return lacking(f.Features)
	})...)
	p.add("kernel", "it has nftables", p.all(func(f *api.NodeFacts) []Finding {
		if f.NFTError == "" {
			return nil
		}
		return found(Failed, "load the module nf_tables, or use a kernel that has it", "nftables does not answer: %s", f.NFTError)
	})...)
	p.add("kernel", "it has WireGuard", p.all(wireGuard)...)
}

func wireGuard(f *api.NodeFacts) []Finding {
	switch {
	case f.Wanted == "off" || f.WireGuard == "kernel" || f.WireGuard == "userspace" && f.Wanted == "userspace":
		return nil
	case f.WireGuard == "userspace" && f.Wanted == "auto":
		return found(Warning, "load the module: modprobe wireguard; in Kubernetes, see docs/kubernetes.md for the setting without it",
			"Linux has no WireGuard here: tunnels run in userspace, which costs more CPU")
	case f.WireGuard == "userspace":
		return found(Failed, "load the module: modprobe wireguard; or set mesh.implementation to userspace", "Linux has no WireGuard here, and mesh.implementation is %s", f.Wanted)
	}
	return found(Failed, "load the module wireguard, or tun; or set mesh.mode to off if the clusters' pods reach each other without tunnels",
		"there is neither WireGuard nor /dev/net/tun")
}

func (p *preChecker) system() {
	const category = "system"
	p.add(category, "cgroup v2 is mounted, with its root", p.all(func(f *api.NodeFacts) []Finding {
		if f.CgroupError == "" {
			return nil
		}
		return found(Failed, "boot with cgroup v2, or name its mount in cgroup", "%s", f.CgroupError)
	})...)
	p.add(category, "a BPF file system is mounted", p.all(func(f *api.NodeFacts) []Finding {
		if f.BPFFS {
			return nil
		}
		return found(Warning, "mount it at each boot, as systemd does: mount -t bpf bpf /sys/fs/bpf; the chart does so in Kubernetes",
			"none is mounted at or above %s", f.PinsPath)
	})...)
	p.add(category, "no other program decides first", p.all(func(f *api.NodeFacts) []Finding {
		if f.ForeignError != "" {
			return found(Unknown, "run it as root", "the programs in the cgroup could not be listed: %s", f.ForeignError)
		}
		names := datapath.Names(slices.DeleteFunc(slices.Clone(f.Foreign), func(o datapath.ForeignProgram) bool { return !o.Chooses() }))
		if len(names) == 0 {
			return nil
		}
		return found(Warning, "strait help STR3103", "socket programs of other software are attached: %s; strait goes before them where the kernel lets it", strings.Join(names, ", "))
	})...)
}

func (p *preChecker) network() {
	const category = "network"
	p.add(category, "the ports are free", p.all(func(f *api.NodeFacts) (out []Finding) {
		for _, port := range f.Ports {
			if port.Error != "" {
				out = append(out, found(Failed, fmt.Sprintf("see who has it: ss -lntup; or set %s to another; if it is strait itself, use strait check", port.Setting),
					"%s, for %s: %s", port.Port, port.For, port.Error)...)
			}
		}
		return out
	})...)
	p.add(category, "packets may come by any link", p.all(func(f *api.NodeFacts) []Finding {
		if f.StrictError != "" {
			return found(Unknown, "look at them: sysctl -a -r rp_filter", "the reverse path filters could not be read: %s", f.StrictError)
		}
		if len(f.Strict) == 0 {
			return nil
		}
		return found(Warning, fmt.Sprintf("let the filter be loose, in /etc/sysctl.d too: sysctl -w net.ipv4.conf.%s.rp_filter=2", f.Strict[0]),
			"several links have a gateway, and %s (rp_filter 1) drops tunnel packets of a machine to which another link leads", strings.Join(f.Strict, ", "))
	})...)
	p.add(category, "packets are large enough for tunnels", p.all(func(f *api.NodeFacts) []Finding {
		switch {
		case f.Wanted == "off":
			return nil
		case f.MTU == 0:
			return found(Unknown, "look at its addresses and routes: ip route", "no link leads to other machines")
		case f.MTU < minUnderlay:
			return found(Failed, fmt.Sprintf("give the link an MTU of at least %d", minUnderlay), "link %s has an MTU of %d", f.Link, f.MTU)
		}
		return nil
	})...)
}
