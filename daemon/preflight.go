package daemon

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath/netfilter"
	"strait.io/strait/datapath/route"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/datapath/wireguard"
)

// Preflight finds out what this machine has of what a daemon with a configuration needs. It changes
// nothing: the ports that it listens on are closed again at once. Root is the machine's file system, which
// a container sees elsewhere.
func Preflight(ctx context.Context, c Config, root string) *api.NodeFacts {
	look := socklb.Look(socklb.Config{Pins: c.BPF.Pins, Cgroup: c.BPF.Cgroup, AllowVirtualRoot: c.BPF.AllowVirtualRoot})
	f := api.NodeFacts{Node: c.Node, Kernel: look.Kernel, PinsPath: c.BPF.Pins, Wanted: "off"}
	f.Features, f.FeaturesError = look.Features, why(look.FeaturesErr)
	if look.FeaturesErr == nil && c.BPF.destroySockets() {
		f.Features = append(f.Features, probeDestroy()...)
	}
	f.Cgroup, f.CgroupError = look.Cgroup, why(look.CgroupErr)
	f.Foreign, f.ForeignError = look.Foreign, why(look.ForeignErr)
	f.BPFFS = look.PinsErr == nil
	f.NFTError = why(netfilter.Supported())
	if c.Mesh.on() {
		f.Wanted = string(cmp.Or(c.Mesh.Implementation, wireguard.Auto))
	}
	f.WireGuard = wireGuardOf(os.DirFS(root), f.Kernel)
	f.Link, f.MTU = outward(ctx)
	links, err := route.Strict(os.DirFS("/"))
	f.Strict, f.StrictError = links, why(err)
	f.Ports = ports(ctx, c)
	return api.NewNodeFacts(f)
}

// PreflightConfig returns the configuration in a file, or that of a machine that has none yet.
func PreflightConfig(path string) (Config, error) {
	c, err := ReadConfig(path, func(*Config) error { return nil })
	if errors.Is(err, fs.ErrNotExist) {
		c = Config{}
		c.setDefaults()
		return c, nil
	}
	return c, err
}

func why(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// wireGuardOf returns the kind of device that a kernel can have: "kernel" if the module is there or can
// be loaded, "userspace" if there is /dev/net/tun, or nothing.
func wireGuardOf(root fs.FS, release string) string {
	if _, err := fs.Stat(root, "sys/module/wireguard"); err == nil {
		return string(wireguard.Kernel)
	}
	for _, list := range []string{"modules.builtin", "modules.dep"} {
		b, err := fs.ReadFile(root, filepath.Join("lib/modules", release, list))
		if err == nil && strings.Contains(string(b), "/wireguard.ko") {
			return string(wireguard.Kernel)
		}
	}
	if _, err := fs.Stat(root, "dev/net/tun"); err == nil {
		return string(wireguard.Userspace)
	}
	return ""
}

// outward returns the link that leads to other machines, and its MTU. Connecting a UDP socket sends
// nothing; the kernel only chooses a route.
func outward(ctx context.Context) (name string, mtu int) {
	for _, far := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // RFC 5737 and RFC 3849
		c, err := new(net.Dialer).DialContext(ctx, "udp", far)
		if err != nil {
			continue
		}
		local := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
		c.Close()
		links, _ := net.Interfaces()
		for _, l := range links {
			addrs, _ := l.Addrs()
			for _, a := range addrs {
				if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == local.Unmap() {
					return l.Name, l.MTU
				}
			}
		}
	}
	return "", 0
}

// listener is a port that a daemon listens on.
type listener struct {
	what, setting, network, addr string
	// probed is true if other nodes send to it.
	probed bool
}

// listening are the ports that a daemon with a configuration listens on.
func listening(c Config) []listener {
	gossip := c.Gossip.Bind.String()
	out := []listener{{"gossip", "gossip.bind", "tcp", gossip, true}, {"gossip", "gossip.bind", "udp", gossip, true}}
	if c.Mesh.on() {
		out = append(out, listener{"WireGuard", "mesh.port", "udp", net.JoinHostPort("", strconv.Itoa(int(c.Mesh.Port))), true})
	}
	if a := c.Metrics.Listen.Addr; a.IsValid() {
		out = append(out, listener{"metrics", "metrics.listen", "tcp", a.String(), false})
	}
	return out
}

// ports says which ports a daemon would listen on, and which of them are taken.
func ports(ctx context.Context, c Config) (out []api.PortFact) {
	for _, l := range listening(c) {
		_, port, _ := net.SplitHostPort(l.addr)
		out = append(out, api.PortFact{For: l.what, Setting: l.setting, Port: port + "/" + strings.ToUpper(l.network), Probed: l.probed,
			Error: why(listens(ctx, l.network, l.addr))})
	}
	return out
}

// listens tries to listen on an address.
func listens(ctx context.Context, network, addr string) (err error) {
	var config net.ListenConfig
	if network == "tcp" {
		l, err := config.Listen(ctx, network, addr)
		if err == nil {
			l.Close()
		}
		return unwrapped(err)
	}
	l, err := config.ListenPacket(ctx, network, addr)
	if err == nil {
		l.Close()
	}
	return unwrapped(err)
}

// unwrapped leaves out the address, which is shown already.
func unwrapped(err error) error {
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}
