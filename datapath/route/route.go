// Package route manages the links, addresses, routes and rules of one node. It acts in the network
// namespace of the calling thread and is the only package that speaks rtnetlink.
//
// Its inputs are datapath.Route values and the addresses of the node. Its outputs are changes in
// strait's own routing table, addresses that become the node's, and a signal when another program
// changed them. It must not know about peers, clusters or why a route is wanted. It writes no
// sysctl.
package route

import (
	"log/slog"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/notify"
)

const (
	// DefaultTable is strait's routing table. No known CNI or VPN uses this number.
	DefaultTable = 5354
	// DefaultPriority is the priority of the rule that leads to the table. It is before the rules
	// that the AWS VPC CNI (512 and up) and Tailscale (5210 and up) add for the pods' own
	// addresses, which would send packets for other clusters to the node's default gateway. It is
	// after the rules of Cilium (up to 110).
	DefaultPriority = 500
	// Protocol marks strait's routes and rules ("proto 154" in ip route). Routes and rules with
	// another number are never changed.
	Protocol = 154
	// metric distinguishes strait's routes from other routes to the same destination: the kernel
	// replaces a route only if destination and metric are the same.
	metric = 154
)

// Config is where the routes are.
type Config struct {
	// Device is the tunnel that routes lead into, such as "strait0".
	Device string
	// Table is the routing table; 0 means DefaultTable.
	Table int
	// Priority is the priority of the ip rule; 0 means DefaultPriority.
	Priority int
	// Local are addresses that become this machine's own, although no device has them.
	Local []netip.Addr
	// Log receives the changes; nil discards them.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Table == 0 {
		c.Table = DefaultTable
	}
	if c.Priority == 0 {
		c.Priority = DefaultPriority
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Router applies routes. Its methods can be called from several goroutines.
type Router struct {
	cfg Config
	log *slog.Logger

	known    known
	underlay notify.Signal

	mu sync.Mutex
	// wanted are the destinations of the last Reconcile. Watch reports only the loss of these, so
	// that strait's own pruning does not trigger it. It is nil before the first Reconcile.
	wanted map[netip.Prefix]bool
	// index and mtu are those of the device that SetUp found last; 0 before. An mtu of 0 is any.
	index, mtu int
	// lookedUp is the index of the destination that reportStrays looks up next.
	lookedUp int
}

// New returns a Router. It does not touch the kernel.
func New(cfg Config) *Router {
	cfg = cfg.withDefaults()
	return &Router{cfg: cfg, log: cfg.Log, underlay: notify.New()}
}

// families are the numbers of IPv4 and IPv6 in netlink.
var families = [...]int{netlink.FAMILY_V4, netlink.FAMILY_V6}

func familyName(family int) string {
	if family == unix.AF_INET6 {
		return "IPv6"
	}
	return "IPv4"
}
