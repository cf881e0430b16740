package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/internal/problem"
)

// listedSeeds returns the seeds in the seeds file, and what is wrong with it. A missing file is not a
// Problem: a cluster that is not connected to others has none.
func listedSeeds(file *watched) (out []string, problems []clustermesh.Problem) {
	text, err := file.text()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		problems = append(problems, clustermesh.Problem{Code: problem.SeedsFile, Object: "seeds", Field: "gossip.seedsFile", File: file.path, Warning: true,
			Message: fmt.Sprintf("cannot be read, its last seeds stay in force: %v", err), Try: "make it readable for straitd"})
	}
	return parseSeeds(text), problems
}

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

// seed tells gossip where to find other nodes: the seeds, and the nodes of its own cluster.
func (d *Daemon) seed(local clustermesh.Local) []clustermesh.Problem {
	fromFile, problems := listedSeeds(d.seeds)
	all := gossip.Seeds{Listed: slices.Concat(d.config.Gossip.Seeds, fromFile)}
	if d.kube != nil {
		all.Hints = nodeHints(local.Nodes, d.self().Node, d.who.Advertise.Port())
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
