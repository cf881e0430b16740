// Package wireguard keeps the WireGuard device of one node: a kernel device where the kernel has
// WireGuard, else wireguard-go on a TUN in a process of its own that outlives the daemon.
//
// Inputs are datapath.Peer values and a key file; outputs are peers in the device and their status. It
// must not know clusters, why a peer is wanted, or routes: links are made through the interface Links.
// Sockets belong to the network namespace of the thread that calls Open.
package wireguard

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/enum"
	"strait.io/strait/internal/key"
)

// Kind says who implements a device.
type Kind string

// The kinds that Config may ask for. A Device is of kind Kernel or Userspace.
const (
	// Auto takes a kernel device where the kernel has WireGuard, else a userspace one. A userspace
	// device that exists stays one, even if the kernel has learned WireGuard since.
	Auto Kind = "auto"
	// Kernel takes a kernel device or none.
	Kernel Kind = "kernel"
	// Userspace takes wireguard-go in a process of its own.
	Userspace Kind = "userspace"
)

// UnmarshalText accepts the names of the kinds.
func (k *Kind) UnmarshalText(b []byte) error { return enum.Decode(k, b, Auto, Kernel, Userspace) }

// DefaultPort is the UDP port that WireGuard listens on by custom.
const DefaultPort = 51820

// Overhead is what WireGuard adds to a packet, in bytes, over an IPv6 underlay: outer IPv6 (40) and UDP (8) headers,
// and its own (32). Over IPv4 it is 20 less.
// The device's MTU is that of the underlay minus this.
const Overhead = 80

// Links makes and configures links; route.Router implements it.
type Links interface {
	// AddWireGuard makes a kernel device, or is content with one that exists. Its error satisfies
	// errors.Is(err, errors.ErrUnsupported) where the kernel has no WireGuard.
	AddWireGuard(name string) error
	// SetUp gives the link its MTU and address and sets it up.
	SetUp(name string, mtu int, addr netip.Prefix) error
}

// Config says which device a node has.
type Config struct {
	// Device is the link's name, at most 15 characters. The socket of a userspace device has the same
	// name and is shared by all network namespaces: on a machine with several nodes each needs its own.
	Device string
	// Port is the UDP port to listen on; 0 lets the device choose one.
	Port uint16
	// MTU of the device in bytes; 0 leaves what it has (1420 for a new one).
	MTU int
	// Addr is the device's own address; may be invalid.
	Addr netip.Prefix
	// KeyFile holds the private key, see LoadKey.
	KeyFile string
	// Mode is Auto, Kernel or Userspace; empty is Auto.
	Mode Kind
	// TunnelCommand starts the userspace process, such as {"/proc/self/exe", "tunnel"}. TunnelArgs.Flags
	// are appended; the program gives them to ParseTunnelArgs and calls RunTunnel. Empty: somebody else starts
	// it, such as a DaemonSet whose pods outlive the daemon's, and a device without one is waited for.
	TunnelCommand []string
	// TunnelLog is the file that the userspace process appends its output to; empty discards it.
	TunnelLog string
	// Log hears what is changed. Nil discards.
	Log *slog.Logger
}

// PeerStatus is a peer as the device knows it.
type PeerStatus struct {
	Key key.Public
	// Underlay is the outer address in use: where the peer's last authentic packet came from, or else
	// what was set. The zero value if neither is known.
	Underlay netip.AddrPort
	// Handshake is the time of the last one; zero if there was none.
	Handshake time.Time
	// Sent and Received count the bytes of encrypted traffic.
	Sent, Received int64
	// AllowedIPs are sorted.
	AllowedIPs []netip.Prefix
}

func (c Config) withDefaults() Config {
	if c.Mode == "" {
		c.Mode = Auto
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) check() error {
	switch c.Mode {
	case Auto, Kernel, Userspace:
	default:
		return fmt.Errorf("wireguard mode %q: want %s, %s or %s", c.Mode, Auto, Kernel, Userspace)
	}
	return checkName(c.Device)
}

// checkName keeps names out that are no link name or would leave the socket directory.
func checkName(device string) error {
	if device == "" || len(device) >= unix.IFNAMSIZ || device == "." || device == ".." ||
		strings.ContainsAny(device, "/: \t\n") {
		return fmt.Errorf("wireguard device %q: want a name of 1 to %d characters without '/', ':' or space",
			device, unix.IFNAMSIZ-1)
	}
	return nil
}
