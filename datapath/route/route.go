// Package route keeps the links, addresses, routes and rules of one node as strait wants them. It acts
// in the network namespace of the calling thread and is the only package that speaks rtnetlink.
//
// Inputs are datapath.Route values and the addresses of the node; outputs are changes in strait's own
// routing table, addresses that become the node's, and a signal when somebody else changed them. It must
// not know peers, clusters or why a route is wanted. It writes no sysctl.
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
	// DefaultTable is strait's routing table. The number is not in use by a known CNI or VPN.
	DefaultTable = 5354
	// DefaultPriority of the rule that leads to the table. It lies before the rules that the AWS VPC
	// CNI (512 and up) and Tailscale (5210 and up) make for the pods' own addresses, which would send
	// packets for other clusters to the node's default gateway, and after those of Cilium (up to 110).
	DefaultPriority = 500
	// Protocol marks strait's routes and rules ("proto 154" in ip route). What has another number is
	// never changed.
	Protocol = 154
	// metric sets strait's routes apart from foreign ones to the same destination: the kernel replaces
	// a route only where destination and metric agree.
	metric = 154
)

// Config says where the routes live.
type Config struct {
	// Device is the tunnel that routes lead into, such as "strait0".
	Device string
	// Table is the routing table; 0 is DefaultTable.
	Table int
	// Priority of the ip rule; 0 is DefaultPriority.
	Priority int
	// Local are addresses that are made this machine's own, though no device has them.
	Local []netip.Addr
	// Log hears what is changed. Nil discards.
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

// Router applies routes. Its methods may be called from several goroutines.
type Router struct {
	cfg Config
	log *slog.Logger

	known    known
	underlay notify.Signal

	mu sync.Mutex
	// wanted are the destinations of the last Reconcile: Watch reports only the loss of these, so that
	// strait's own pruning does not wake it up. Nil before the first Reconcile.
	wanted map[netip.Prefix]bool
}

// New prepares a Router. It does nothing to the kernel.
func New(cfg Config) *Router {
	cfg = cfg.withDefaults()
	return &Router{cfg: cfg, log: cfg.Log, underlay: notify.New()}
}

// families are IPv4 and IPv6 as netlink numbers them.
var families = [...]int{netlink.FAMILY_V4, netlink.FAMILY_V6}

func familyName(family int) string {
	if family == unix.AF_INET6 {
		return "IPv6"
	}
	return "IPv4"
}
