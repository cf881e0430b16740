package fleet

import (
	"net/netip"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// place is what an operator sets for a cluster.
type place struct {
	id                          string
	pods, nodes, regions, zones []string
}

func (p *place) flags(c *cobra.Command, whose string) {
	c.Flags().StringVar(&p.id, "id", "", "`id` of the cluster: a DNS label")
	c.Flags().StringSliceVar(&p.pods, "pods", nil, "`ranges` of "+whose+" pods, as in 10.1.0.0/16")
	c.Flags().StringSliceVar(&p.nodes, "nodes", nil, "`ranges` of "+whose+" machines, as in 192.0.2.0/24")
	c.Flags().StringSliceVar(&p.regions, "regions", nil, "`regions` where its nodes can be; without it, anywhere")
	c.Flags().StringSliceVar(&p.zones, "zones", nil, "`zones` where its nodes can be; without it, all of its regions")
	_ = c.MarkFlagRequired("id")
	_ = c.MarkFlagRequired("nodes")
}

func (p place) pin() (authority.Pin, error) {
	pin := authority.Pin{Cluster: clustermesh.ClusterName(p.id), Regions: p.regions, Zones: p.zones}
	for _, f := range []struct {
		name  string
		texts []string
		to    *[]netip.Prefix
	}{{"--pods", p.pods, &pin.Pods}, {"--nodes", p.nodes, &pin.Nodes}} {
		for _, text := range f.texts {
			r, err := netip.ParsePrefix(text)
			if err != nil {
				return pin, cli.UsageError("%s %q: want a range, as in 10.1.0.0/16", f.name, text)
			}
			*f.to = append(*f.to, r)
		}
	}
	return pin, nil
}
