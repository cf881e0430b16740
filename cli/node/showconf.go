package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/datapath"
)

const showconfLong = `Print the WireGuard configuration of a node, as this node knows it. NAME is NODE or CLUSTER/NODE.

What is printed is what wg setconf takes. It never has a private key: straitd on the node owns it,
in wireguard.key of its stateDir, and wg setconf takes the key away from a device. So go on with:
  wg set DEVICE private-key FILE

With --as-peer, the node itself is printed as a [Peer] section, for a machine that wants a tunnel to
it. With -o yaml or -o json it is a Peer of Kilo (kilo.squat.ai/v1alpha1), for kubectl apply in a
cluster that has Kilo. The node accepts only peers that it knows; see strait peer add.`

// showconf is what one run of strait peer showconf is asked for.
type showconf struct {
	asPeer  bool
	format  string
	allowed []string
}

var showconfFormats = []string{"wg", "yaml", "json"}

func showconfNodeCommand(a *cli.App) *cobra.Command {
	var s showconf
	cmd := &cobra.Command{
		Use:   "node NAME",
		Short: "Print a node's WireGuard configuration",
		Long:  showconfLong,
		Example: "  strait peer showconf node us-east-1 > strait0.conf\n" +
			"  strait peer showconf node us-east-1 --as-peer --allowed-ips 10.96.0.0/16\n" +
			"  strait peer showconf node us-east-1 --as-peer -o yaml > peer.yaml",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			extra, err := s.check()
			if err != nil {
				return err
			}
			list, err := cli.Ask(cmd.Context(), a, (*client.Client).Nodes)
			if err != nil {
				return err
			}
			n, err := findNode(list, args[0])
			if err != nil {
				return err
			}
			if why := noTunnel(n); why != "" {
				return fmt.Errorf("%s cannot be a peer: %s", fullName(n), why)
			}
			var text []byte
			if s.asPeer {
				text, err = s.peer(n, extra)
			} else {
				text, err = askWholeConf(cmd.Context(), a, list, n)
			}
			if err == nil {
				_, err = a.Stdout.Write(text)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&s.asPeer, "as-peer", false, "print the node as a peer of others")
	f.StringVarP(&s.format, "output", "o", "wg", "output `format`: wg, or with --as-peer yaml or json")
	f.StringSliceVar(&s.allowed, "allowed-ips", nil, "with --as-peer: more `CIDR`s to reach through the node")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(showconfFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// check returns the additional prefixes.
func (s showconf) check() (extra []netip.Prefix, err error) {
	switch {
	case !slices.Contains(showconfFormats, s.format):
		return nil, cli.UsageError("unknown --output %q; use %s", s.format, strings.Join(showconfFormats, ", "))
	case !s.asPeer && s.format != "wg":
		return nil, cli.UsageError("--output %s needs --as-peer: only a peer has that form; a whole configuration is for wg", s.format)
	case !s.asPeer && len(s.allowed) > 0:
		return nil, cli.UsageError("--allowed-ips needs --as-peer: it is for the machine that has the node as its peer")
	}
	return parsePrefixes("--allowed-ips", s.allowed)
}

// parsePrefixes reads CIDRs of a flag.
func parsePrefixes(flag string, texts []string) (out []netip.Prefix, err error) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, cli.UsageError("%s: %q is not a CIDR, as in 10.96.0.0/16", flag, text)
		}
		if p != p.Masked() {
			return nil, cli.UsageError("%s: %s has host bits set; did you mean %s?", flag, p, p.Masked())
		}
		out = append(out, p)
	}
	return out, nil
}

// findNode returns the node that a name means: NODE, or CLUSTER/NODE.
func findNode(l *api.NodeList, name string) (*api.Node, error) {
	var found []*api.Node
	var names []string
	for i := range l.Items {
		if n := &l.Items[i]; n.Name == name || fullName(n) == name {
			found, names = append(found, n), append(names, fullName(n))
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, fmt.Errorf("no node of the clusterset is called %s; strait nodes lists them", name)
	}
	return nil, fmt.Errorf("several nodes are called %s; name one of %s", name, strings.Join(names, ", "))
}

// peer returns a node as a peer of others.
func (s showconf) peer(n *api.Node, extra []netip.Prefix) ([]byte, error) {
	allowed := slices.Concat(n.Peer.AllowedIPs, extra)
	if s.format == "wg" {
		return peerSection(n, allowed), nil
	}
	out, err := json.MarshalIndent(kiloPeer(n, allowed), "", "  ")
	if s.format == "json" {
		return append(out, '\n'), err
	}
	if err == nil {
		out, err = yaml.JSONToYAML(out)
	}
	return out, err
}

// askWholeConf asks for the tunnels of a node, and returns the configuration of its device.
func askWholeConf(ctx context.Context, a *cli.App, l *api.NodeList, n *api.Node) ([]byte, error) {
	between, err := askTunnels(ctx, a, fullName(n))
	if err != nil {
		return nil, err
	}
	return wholeConf(l, n, between), nil
}

// wholeConf is the configuration of a node's device: itself, and the nodes that its tunnels lead to, with what is
// reached through them. It renders the mesh of the daemon that was asked, as graph does.
func wholeConf(l *api.NodeList, n *api.Node, between tunnels) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Node %s. The private key is not here: wg setconf clears it, so set it afterwards with\n", cli.Clean(fullName(n)))
	fmt.Fprintf(&b, "# wg set DEVICE private-key FILE, where FILE is wireguard.key in the stateDir of the node.\n")
	fmt.Fprintf(&b, "[Interface]\nListenPort = %d\nFwMark = 0x%x\n", n.Peer.Endpoint.Port(), datapath.TunnelMark)
	owned := map[string][]netip.Prefix{}
	for i := range l.Items {
		if o := &l.Items[i]; o.Peer != nil {
			owned[fullName(o)] = o.Peer.AllowedIPs
		}
	}
	for i := range l.Items {
		o := &l.Items[i]
		to, is := between[fullName(n)][fullName(o)]
		if !is || noTunnel(o) != "" {
			continue
		}
		var allowed []netip.Prefix
		for _, name := range to.Reaches() {
			allowed = append(allowed, owned[name]...)
		}
		b.WriteByte('\n')
		b.Write(peerSection(o, allowed))
	}
	return b.Bytes()
}

// peerSection is a node as a peer, with what is reached through it.
func peerSection(n *api.Node, allowed []netip.Prefix) []byte {
	var ips []string
	for _, p := range unique(allowed) {
		ips = append(ips, p.String())
	}
	return fmt.Appendf(nil, "# %s\n[Peer]\nPublicKey = %s\nEndpoint = %s\nAllowedIPs = %s\n",
		cli.Clean(fullName(n)), n.Peer.PublicKey, n.Peer.Endpoint, strings.Join(ips, ", "))
}

// unique returns the prefixes sorted, each once.
func unique(all []netip.Prefix) []netip.Prefix {
	out := slices.Clone(all)
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out)
}

// kiloPeer is the node as an object of Kilo, whose fields are those of its CRD. The name has the
// cluster in it, since nodes of two clusters can have one name.
func kiloPeer(n *api.Node, allowed []netip.Prefix) any {
	return map[string]any{
		"apiVersion": "kilo.squat.ai/v1alpha1", "kind": "Peer",
		"metadata": map[string]any{"name": n.Cluster + "." + n.Name},
		"spec": map[string]any{
			"publicKey":  n.Peer.PublicKey,
			"allowedIPs": unique(allowed),
			"endpoint":   map[string]any{"dnsOrIP": map[string]any{"ip": n.Peer.Endpoint.Addr()}, "port": n.Peer.Endpoint.Port()},
		},
	}
}
