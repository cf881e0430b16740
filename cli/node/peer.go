package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
	"strait.io/strait/internal/durable"
)

const peerLong = `Look at nodes as WireGuard peers, and say which machines outside every cluster are peers of nodes.

Such a machine needs only WireGuard, not strait. Its pin says which addresses it has and what it
reaches; it is in the file that mesh.peersFile of straitd's configuration names.`

// PeerCommand is strait peer. Its proxied reports whether kube-proxy runs on this node.
func PeerCommand(a *cli.App, proxied func() bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "peer",
		Short: "Show nodes as WireGuard peers, and pin machines outside every cluster",
		Long:  peerLong,
		Example: "  strait peer showconf node us-east-1 --as-peer\n" +
			"  strait peer list",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	show := &cobra.Command{
		Use:     "showconf",
		Short:   "Print WireGuard configuration that wg takes",
		Long:    "Print WireGuard configuration that wg takes. It never has a private key.",
		Example: "  strait peer showconf node us-east-1\n  strait peer showconf node eu-central/n1 --as-peer -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	conf, list := showconfNodeCommand(a), peerListCommand(a, proxied)
	a.AskFlags(conf, list)
	show.AddCommand(conf)
	cmd.AddCommand(show, peerAddCommand(a), list, peerRemoveCommand(a))
	return cmd
}

const peerAddLong = `Pin a machine outside every cluster, so that nodes of this cluster accept it as a WireGuard peer.

The machine may send from the addresses of --range, and reaches the pods of the node that it has a
tunnel to, and nothing else: not the node, and not what is behind it. With --to it also calls these
addresses through the node, such as the range of Services or the pods of another cluster, which then
see the node's address. A range that overlaps anything of the clusterset is refused; strait peer
list says so.

A ClusterSetIP that strait chose itself (241.0.0.0/8) answers only programs on the nodes: packets of
other machines meet no socket there. The machine can call pods, whose addresses the DNS names of
headless Services give. Where derived Services hold the ClusterSetIPs, kube-proxy on the node serves
them, if the node has a kube-proxy.

The pin is written to a file of this machine, which straitd reads again within 2 seconds. Every node
that shall accept the machine needs the file. A pin of the same name is replaced.`

// pin is what one run of strait peer add is asked for.
type pin struct {
	file, publicKey, endpoint string
	ranges, to, nodes         []string
}

func peerAddCommand(a *cli.App) *cobra.Command {
	var p pin
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Let a machine outside every cluster have a tunnel to nodes of this one",
		Long:  peerAddLong,
		Example: "  strait peer add laptop --public-key \"$(cat laptop.pub)\" --range 10.99.0.2/32\n" +
			"  strait peer add laptop --public-key \"$(cat laptop.pub)\" --range 10.99.0.2/32 --to 10.96.0.0/16",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			g, err := p.guest(args[0])
			if err != nil {
				return err
			}
			if _, err := change(p.file, func(gs []authority.Guest) []authority.Guest {
				return append(slices.DeleteFunc(gs, func(old authority.Guest) bool { return old.Name == g.Name }), g)
			}); err != nil {
				return err
			}
			a.Hint("pinned %s in %s; strait peer list shows whether this node accepts it", g.Name, p.file)
			a.Hint("for its own configuration: strait peer showconf node NODE --as-peer, with --allowed-ips for each --to")
			return nil
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&p.publicKey, "public-key", "", "WireGuard public `key` of the machine, from wg pubkey")
	f.StringSliceVar(&p.ranges, "range", nil, "`CIDR`s that the machine sends from")
	f.StringSliceVar(&p.to, "to", nil, "`CIDR`s that it may call besides the pods of its entry node")
	f.StringSliceVar(&p.nodes, "node", nil, "`names` of the nodes that accept it (default: all that have the file)")
	f.StringVar(&p.endpoint, "endpoint", "", "outer `address` and port of the machine, if nodes shall call it")
	addPeersFile(cmd, &p.file)
	_ = cmd.MarkFlagRequired("public-key")
	_ = cmd.MarkFlagRequired("range")
	return cmd
}

func addPeersFile(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "file", authority.GuestsFile, "`file` with the pins (mesh.peersFile)")
}

// guest returns the pin as it is stored.
func (p pin) guest(name string) (g authority.Guest, err error) {
	g.Name = name
	if err := g.PublicKey.UnmarshalText([]byte(p.publicKey)); err != nil {
		return g, cli.UsageError("--public-key: %v", err)
	}
	if g.Range, err = parsePrefixes("--range", p.ranges); err != nil {
		return g, err
	}
	if g.To, err = parsePrefixes("--to", p.to); err != nil {
		return g, err
	}
	for _, n := range p.nodes {
		g.Nodes = append(g.Nodes, clustermesh.NodeName(n))
	}
	if p.endpoint != "" {
		if g.Endpoint, err = netip.ParseAddrPort(p.endpoint); err != nil {
			return g, cli.UsageError("--endpoint: %q is not an address and port, as in 192.0.2.1:51820", p.endpoint)
		}
	}
	if _, err := authority.ParseGuests(authority.EncodeGuests([]authority.Guest{g})); err != nil {
		return g, cli.UsageError("%s", strings.ReplaceAll(strings.ReplaceAll(err.Error(), "peers[0].", ""), "\n", ", "))
	}
	return g, nil
}

// change reads the pins of a file, and writes what f makes of them. Without f's change, the file stays
// as it is, with its comments.
func change(file string, f func([]authority.Guest) []authority.Guest) (changed bool, err error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read the pins: %w", err)
	}
	have, err := authority.ParseGuests(text)
	if err != nil {
		return false, fmt.Errorf("%s: %w; correct it first", file, err)
	}
	before := authority.EncodeGuests(have)
	after := authority.EncodeGuests(f(slices.Clone(have)))
	if string(before) == string(after) {
		return false, nil
	}
	if _, err := authority.ParseGuests(after); err != nil {
		return false, fmt.Errorf("%w; nothing was changed", err)
	}
	return true, durable.Replace(file, func(w *os.File) error {
		_, err := w.Write(after)
		return err
	})
}

func peerRemoveCommand(a *cli.App) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Take the tunnels of a machine outside every cluster away",
		Long: "Remove the pin of a machine outside every cluster. straitd reads the file again within 2 seconds,\n" +
			"and removes the peer from the device: nothing that the machine sends is accepted any more.",
		Example:           "  strait peer remove laptop\n  strait peer remove laptop --file /etc/strait/peers.yaml",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			changed, err := change(file, func(gs []authority.Guest) []authority.Guest {
				return slices.DeleteFunc(gs, func(g authority.Guest) bool { return g.Name == args[0] })
			})
			if err == nil && !changed {
				err = fmt.Errorf("%s pins no peer %s; strait peer list shows those in force", file, args[0])
			}
			return err
		},
	}
	addPeersFile(cmd, &file)
	return cmd
}

// unproxied prints which machines shall call ClusterSetIPs that, without kube-proxy, nothing on this
// node translates for them: strait does it in sockets, and what is passed on meets none.
func unproxied(p cli.Printer, guests []api.Guest, services []api.Service) {
	for _, g := range guests {
		service, ip, calls := called(g, services)
		if !calls {
			continue
		}
		p.Line("%s %s calls ClusterSetIPs, such as %s of %s, and no kube-proxy answers on port %s of this node:", api.Warn, g.Name, ip, service, proxyPort)
		p.Line("  unless something else translates Services here, let it call pods, whose addresses headless Services give")
	}
}

// called returns a Service whose address a machine that this node accepts may call.
func called(g api.Guest, services []api.Service) (service string, ip netip.Addr, found bool) {
	if g.Elsewhere || g.Refused != "" {
		return "", ip, false
	}
	for _, s := range services {
		for _, ip := range s.IPs {
			if slices.ContainsFunc(g.To, func(p netip.Prefix) bool { return p.Contains(ip) }) {
				return s.Name, ip, true
			}
		}
	}
	return "", ip, false
}

const peerListLong = `List the machines outside every cluster that have a pin, as this node sees them: whether it accepts
them, what they reach, and when the last handshake was. A refusal is a problem in strait status too.`

func peerListCommand(a *cli.App, proxied func() bool) *cobra.Command {
	return cli.List[api.Guest, *peers]{
		Table: table.Peers, Noun: "peer",
		Ask: func(c *client.Client, ctx context.Context, _ cli.Names) (*peers, error) {
			list, err := c.Peers(ctx)
			if err != nil {
				return nil, err
			}
			p := &peers{PeerList: *list}
			if services, err := c.Services(ctx); err == nil && !proxied() {
				p.services = services.Items
			}
			return p, nil
		},
		Items: func(p *peers) *[]api.Guest { return &p.Items },
		From:  func(p *peers) api.Viewpoint { return p.SeenFrom },
		After: func(p cli.Printer, l *peers) { unproxied(p, l.Items, l.services) },
		Empty: "no machine outside the clusters has a pin: strait peer add makes one",
	}.Fill(a, &cobra.Command{
		Use:     "list [NAME...]",
		Short:   "List the machines outside every cluster that have a pin",
		Long:    peerListLong,
		Example: "  strait peer list\n  strait peer list laptop -o wide",
	})
}

// peers is the list of peers, with the services that they may call where nothing serves ClusterIPs.
type peers struct {
	api.PeerList
	services []api.Service
}
