package fleet

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/install/trust"
)

// pinFlags are what connect pins.
type pinFlags struct {
	pin, yes                             bool
	pods, nodes, regions, zones, accepts []string
}

func (f *pinFlags) declare(c *cobra.Command) {
	c.Flags().BoolVar(&f.pin, "pin", true, "have the clusters trust only each other")
	c.Flags().BoolVar(&f.yes, "yes", false, "pin without asking")
	for _, x := range []struct {
		to          *[]string
		name, usage string
	}{
		{&f.pods, "pods", "ranges of pods, `CLUSTER=CIDR`[,CIDR]; repeatable"},
		{&f.nodes, "nodes", "ranges of nodes, `CLUSTER=CIDR`[,CIDR]; repeatable"},
		{&f.regions, "regions", "regions of nodes, `CLUSTER=NAME`[,NAME]; repeatable"},
		{&f.zones, "zones", "zones of nodes, `CLUSTER=NAME`[,NAME]; repeatable"},
		{&f.accepts, "accept", "namespaces that others accept, `CLUSTER=NAME`[,NAME]"},
	} {
		c.Flags().StringArrayVar(x.to, x.name, nil, x.usage)
	}
}

// asked reads the flags.
func (f pinFlags) asked() (a trust.Asked, err error) {
	if !f.pin && len(f.pods)+len(f.nodes)+len(f.regions)+len(f.zones)+len(f.accepts) > 0 {
		return a, cli.UsageError("--pods, --nodes, --regions, --zones and --accept say what is pinned: leave out --pin=false")
	}
	split := func(flag string, values []string) map[string][]string {
		out := map[string][]string{}
		for _, v := range values {
			id, list, ok := strings.Cut(v, "=")
			if !ok || id == "" || list == "" {
				err = errors.Join(err, cli.UsageError("--%s %s: want CLUSTER=VALUE[,VALUE]", flag, v))
				continue
			}
			out[id] = append(out[id], strings.Split(list, ",")...)
		}
		return out
	}
	ranges := func(flag string, values []string) map[string][]netip.Prefix {
		out := map[string][]netip.Prefix{}
		for id, list := range split(flag, values) {
			for _, text := range list {
				p, bad := netip.ParsePrefix(text)
				if bad != nil {
					err = errors.Join(err, cli.UsageError("--%s %s=%s: %q is no CIDR, as in 10.11.0.0/16", flag, id, text, text))
				}
				out[id] = append(out[id], p)
			}
		}
		return out
	}
	a = trust.Asked{Pods: ranges("pods", f.pods), Nodes: ranges("nodes", f.nodes), Regions: split("regions", f.regions), Zones: split("zones", f.zones), Namespaces: split("accept", f.accepts)}
	return a, err
}
