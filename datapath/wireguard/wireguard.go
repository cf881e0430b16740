// Package wireguard manages the WireGuard device of one node: a kernel device if the kernel has
// WireGuard, otherwise wireguard-go on a TUN, in a process of its own that outlives the daemon.
//
// Its inputs are datapath.Peer values and a key file. Its outputs are peers in the device and their
// status. It must not know about clusters, why a peer is wanted, or routes: it creates links
// through the interface Links. Sockets belong to the network namespace of the thread that calls
// Open.
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

// Kind is what implements a device.
type Kind string

// The kinds that Config can ask for. The kind of a Device is Kernel or Userspace.
const (
	// Auto uses a kernel device if the kernel has WireGuard, otherwise a userspace one. An existing
	// userspace device stays one, even if the kernel has got WireGuard since.
	Auto Kind = "auto"
	// Kernel uses a kernel device or none.
	Kernel Kind = "kernel"
	// Userspace uses wireguard-go in a process of its own.
	Userspace Kind = "userspace"
)

// UnmarshalText accepts the names of the kinds.
func (k *Kind) UnmarshalText(b []byte) error { return enum.Decode(k, b, Auto, Kernel, Userspace) }

// DefaultPort is the UDP port that WireGuard usually listens on.
const DefaultPort = 51820

// Overhead is what WireGuard adds to a packet over an IPv6 underlay, in bytes: the outer IPv6 (40)
// and UDP (8) headers, and its own (32). Over IPv4 it is 20 less. The device's MTU is that of the
// underlay minus Overhead.
const Overhead = 80

// Padding is the number of bytes that WireGuard fills packets up to a multiple of. It does not fill
// them beyond the device's MTU.
const Padding = 16

// Links creates and configures links; route.Router implements it.
type Links interface {
	// Claim gives a link of strait's that was renamed its name back, and refuses a link of the name that is
	// not strait's. It succeeds if there is none.
	Claim(name string) error
	// AddWireGuard adds a kernel device, and succeeds if it exists. Its error satisfies
	// errors.Is(err, errors.ErrUnsupported) if the kernel has no WireGuard.
	AddWireGuard(name string) error
	// SetUp sets the link's MTU and address, and sets the link up. Its error satisfies
	// errors.Is(err, unix.ENODEV) if there is no link of this name.
	SetUp(name string, mtu int, addr netip.Prefix) error
}

// Config describes a node's device.
type Config struct {
	// Device is the link's name, at most 15 characters. The socket of a userspace device has the
	// same name and is shared by all network namespaces: if a machine has several nodes, each needs
	// a name of its own.
	Device string
	// Port is the UDP port to listen on; 0 lets the device choose one.
	Port uint16
	// MTU is the MTU of the device in bytes; 0 leaves it as it is (1420 for a new device).
	MTU int
	// Addr is the device's own address; can be invalid.
	Addr netip.Prefix
	// KeyFile is the file with the private key, see LoadKey.
	KeyFile string
	// Mode is Auto, Kernel or Userspace; empty means Auto.
	Mode Kind
	// TunnelCommand starts the userspace process, such as {"/proc/self/exe", "tunnel"}.
	// TunnelArgs.Flags are appended; the program passes them to ParseTunnelArgs and calls
	// RunTunnel. If TunnelCommand is empty, something else starts the process, such as a DaemonSet
	// whose pods outlive those of the daemon; the Device then waits for it.
	TunnelCommand []string
	// TunnelLog is the file that the userspace process appends its output to; empty discards it.
	TunnelLog string
	// Log receives the changes; nil discards them.
	Log *slog.Logger
}

// PeerStatus is the state of a peer in the device.
type PeerStatus struct {
	Key key.Public
	// Underlay is the outer address in use: where the peer's last authentic packet came from, or if
	// there was none, what was set. It is the zero value if neither is known.
	Underlay netip.AddrPort
	// Handshake is the time of the last handshake; zero if there was none.
	Handshake time.Time
	// Sent and Received count the bytes of encrypted traffic.
	Sent, Received int64
	// Altered: it has a preshared key or keepalives, which another program has set.
	Altered bool
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

// checkName refuses names that are not valid for a link or that would leave the socket directory.
func checkName(device string) error {
	if device == "" || len(device) >= unix.IFNAMSIZ || device == "." || device == ".." ||
		strings.ContainsAny(device, "/: \t\n") {
		return fmt.Errorf("wireguard device %q: want a name of 1 to %d characters without '/', ':' or space",
			device, unix.IFNAMSIZ-1)
	}
	return nil
}
