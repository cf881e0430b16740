package mesh

import (
	"fmt"
	"net/netip"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// Remote is a range of addresses that only pods of another cluster have.
type Remote struct {
	Cluster clustermesh.ClusterName
	Range   netip.Prefix
}

// tunnelOnly returns the remote ranges. One that covers something else that this machine must reach is a Problem
// instead.
func (m work) tunnelOnly() (out []netip.Prefix, problems []clustermesh.Problem) {
	if !m.On {
		return nil, nil
	}
	for _, r := range m.Remotes {
		covers := m.covers(r)
		if covers == "" {
			out = append(out, r.Range.Masked())
			continue
		}
		problems = append(problems, problem.Cluster(string(r.Cluster)).Problem(clustermesh.Problem{
			Code: problem.PrefixForbidden, Field: "pods", Warning: true,
			Message: fmt.Sprintf("its pinned range %s: packets to pods there that no tunnel leads to leave in clear", covers),
			Try:     "pin only ranges of its pods, or set mesh.strict to false if that is intended",
		}))
	}
	return out, problems
}

// covers returns what a range covers that is no pod of its cluster.
func (m work) covers(r Remote) string {
	for n := range m.State.Nodes() {
		if n.Origin.Cluster == r.Cluster {
			continue
		}
		for _, p := range n.Content.Node.Prefixes {
			if p.Overlaps(r.Range) {
				return fmt.Sprintf("%s overlaps %s of node %s", r.Range, p, n.Origin)
			}
		}
	}
	if refusal := m.forbidden.check(node{origin: clustermesh.Origin{Cluster: r.Cluster}}, r.Range.Masked()); refusal != nil {
		return refusal.covers
	}
	return ""
}
