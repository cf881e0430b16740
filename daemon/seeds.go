package daemon

import (
	"net/netip"
	"slices"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/internal/problem"
)

// parseSeeds reads one seed per line. A # begins a comment.
func parseSeeds(text string) (out []string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

// seed gives gossip the addresses of other nodes: the seeds, and the nodes of its own cluster.
func (d *Daemon) seed(local clustermesh.Local) []clustermesh.Problem {
	fromFile, problems := d.files.seeds.Next()
	all := gossip.Seeds{
		Listed: slices.Concat(d.config.Gossip.Seeds, fromFile, d.trust.seeds),
		Hints:  d.kube.hints(local.Nodes, d.self().Node, d.who.Advertise.Port()),
	}
	if err := d.gossip.SetSeeds(all); err != nil {
		problems = append(problems, clustermesh.Problem{Code: problem.SeedsFile, Object: "seeds", Field: "gossip.seedsFile", File: d.config.Gossip.SeedsFile,
			Message: strings.ReplaceAll(err.Error(), "\n", ", "), Try: "write one HOST:PORT per line"})
	}
	return problems
}

// nodeHints returns the addresses of the cluster's other nodes, with the port that all of them
// listen on.
func nodeHints(nodes []clustermesh.Node, self clustermesh.NodeName, port uint16) (out []netip.AddrPort) {
	for _, n := range nodes {
		if n.Name != self && len(n.Addresses) > 0 {
			out = append(out, netip.AddrPortFrom(n.Addresses[0], port))
		}
	}
	return out
}
