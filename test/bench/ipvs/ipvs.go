// Package ipvs loads the services that kube-proxy's IPVS mode would load: every ClusterIP on a dummy
// device, and a virtual server with the round-robin scheduler and masqueraded real servers for each.
//
// Input is frontends, output is in the kernel, in the network namespace of the calling thread. It
// must not know what is measured. kube-proxy's iptables rules, which only mark and masquerade, are
// left out.
package ipvs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// Of linux/ip_vs.h.
const (
	family  = "IPVS"
	version = 1

	newService     = 1
	newDestination = 5

	attrService     = 1
	attrDestination = 2

	serviceFamily    = 1
	serviceProto     = 2
	serviceAddr      = 3
	servicePort      = 4
	serviceScheduler = 6
	serviceFlags     = 7
	serviceTimeout   = 8
	serviceNetmask   = 9

	destinationAddr   = 1
	destinationPort   = 2
	destinationMethod = 3
	destinationWeight = 4
	destinationUpper  = 5
	destinationLower  = 6

	masquerade = 0
)

// device is the name that kube-proxy gives the device.
const device = "kube-ipvs0"

// sysctls are those that kube-proxy sets.
var sysctls = map[string]string{
	"conntrack": "1", "conn_reuse_mode": "0", "expire_nodest_conn": "1", "expire_quiescent_template": "1",
}

// Available returns an error that says what to do if the kernel has no IPVS. It loads the module if
// there is one.
func Available() error {
	_, err := netlink.GenlFamilyGet(family)
	if errors.Is(err, unix.ENOENT) {
		return errors.New("the kernel has no IPVS: it needs CONFIG_IP_VS and CONFIG_IP_VS_RR, or the modules ip_vs and ip_vs_rr")
	}
	if err != nil {
		return fmt.Errorf("ask the kernel for IPVS: %w", err)
	}
	return nil
}

// Load loads the services. They vanish with the namespace.
func Load(frontends []datapath.Frontend) error {
	id, err := netlink.GenlFamilyGet(family)
	if err != nil {
		return fmt.Errorf("find IPVS: %w", err)
	}
	for name, v := range sysctls {
		if err := os.WriteFile(filepath.Join("/proc/sys/net/ipv4/vs", name), []byte(v), 0); err != nil {
			return err
		}
	}
	link := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: device}}
	if err := netlink.LinkAdd(link); err != nil {
		return fmt.Errorf("add %s: %w", device, err)
	}
	socket, err := nl.Subscribe(unix.NETLINK_GENERIC)
	if err != nil {
		return fmt.Errorf("open netlink socket: %w", err)
	}
	defer socket.Close()
	c := conn{id.ID, map[int]*nl.SocketHandle{unix.NETLINK_GENERIC: {Socket: socket}}}
	for _, f := range frontends {
		addr := &netlink.Addr{IPNet: netlink.NewIPNet(f.Addr.IP.AsSlice())}
		if err := netlink.AddrAdd(link, addr); err != nil {
			return fmt.Errorf("add address %s: %w", f.Addr.IP, err)
		}
		if err := c.load(f); err != nil {
			return fmt.Errorf("frontend %s: %w", f.Addr, err)
		}
	}
	return nil
}

type conn struct {
	id      uint16
	sockets map[int]*nl.SocketHandle
}

func (c conn) load(f datapath.Frontend) error {
	if err := c.do(newService, service(f.Addr)); err != nil {
		return fmt.Errorf("add virtual server: %w", err)
	}
	for _, b := range f.Backends {
		if err := c.do(newDestination, service(f.Addr), destination(b)); err != nil {
			return fmt.Errorf("add real server %s: %w", b.AddrPort(), err)
		}
	}
	return nil
}

func (c conn) do(command uint8, attrs ...*nl.RtAttr) error {
	req := nl.NewNetlinkRequest(int(c.id), unix.NLM_F_ACK)
	req.Sockets = c.sockets
	req.AddData(&nl.Genlmsg{Command: command, Version: version})
	for _, a := range attrs {
		req.AddData(a)
	}
	_, err := req.Execute(unix.NETLINK_GENERIC, 0)
	return err
}

func service(at l4.Addr) *nl.RtAttr {
	a := nl.NewRtAttr(attrService|unix.NLA_F_NESTED, nil)
	a.AddRtAttr(serviceFamily, nl.Uint16Attr(unix.AF_INET))
	a.AddRtAttr(serviceProto, nl.Uint16Attr(uint16(at.Proto)))
	a.AddRtAttr(serviceAddr, union(at.IP))
	a.AddRtAttr(servicePort, port(at.Port))
	a.AddRtAttr(serviceScheduler, nl.ZeroTerminated("rr"))
	a.AddRtAttr(serviceFlags, append(nl.Uint32Attr(0), nl.Uint32Attr(^uint32(0))...)) // flags and their mask
	a.AddRtAttr(serviceTimeout, nl.Uint32Attr(0))
	a.AddRtAttr(serviceNetmask, nl.Uint32Attr(^uint32(0)))
	return a
}

func destination(b datapath.Backend) *nl.RtAttr {
	a := nl.NewRtAttr(attrDestination|unix.NLA_F_NESTED, nil)
	a.AddRtAttr(destinationAddr, union(b.IP))
	a.AddRtAttr(destinationPort, port(b.Port))
	a.AddRtAttr(destinationMethod, nl.Uint32Attr(masquerade))
	a.AddRtAttr(destinationWeight, nl.Uint32Attr(1))
	a.AddRtAttr(destinationUpper, nl.Uint32Attr(0))
	a.AddRtAttr(destinationLower, nl.Uint32Attr(0))
	return a
}

// union returns an IPv4 address in the kernel's union of both families.
func union(a netip.Addr) []byte { return append(a.AsSlice(), make([]byte, 12)...) }

func port(p uint16) []byte { return binary.BigEndian.AppendUint16(nil, p) }
