package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// Remote is a range of addresses that only pods of another cluster have.
type Remote struct {
	Cluster clustermesh.ClusterName
	Range   netip.Prefix
}

// closed makes the remote ranges unreachable. Routes to peers' prefixes are more specific, or equal,
// and then the range is left to them. A range that covers something else that this machine must reach
// is a Problem instead.
func (m mesh) closed(routes []datapath.Route) (out []datapath.Route, problems []clustermesh.Problem) {
	if !m.config.Mesh {
		return nil, nil
	}
	for _, r := range m.remotes {
		if covers := m.covers(r); covers != "" {
			problems = append(problems, clustermesh.Problem{
				Code: problem.PrefixForbidden, Object: "cluster " + string(r.Cluster), Field: "pods", Warning: true,
				Message: fmt.Sprintf("its pinned range %s: packets to pods there that no tunnel leads to leave in clear", covers),
				Try:     "pin only ranges of its pods, or set mesh.strict to false if that is intended",
			})
			continue
		}
		dst := r.Range.Masked()
		same := func(x datapath.Route) bool { return x.Dst == dst }
		if !slices.ContainsFunc(routes, same) && !slices.ContainsFunc(out, same) {
			out = append(out, datapath.Route{Dst: dst, Unreachable: true})
		}
	}
	return out, problems
}

// covers says what a range covers that is no pod of its cluster.
func (m mesh) covers(r Remote) string {
	for n := range m.state.Nodes() {
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
