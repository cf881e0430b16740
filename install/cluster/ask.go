package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

// Answer is one daemon's view of the clusterset.
type Answer struct {
	Cluster, Node string
	// MeshOff is true if pods are reached without a tunnel.
	MeshOff  bool
	Nodes    []api.Node
	Clusters []api.Cluster
	Problems []problem.Problem
}

// Ask asks every ready daemon what it knows. If some do not answer, it returns an error along with
// the answers of the others.
func (c *Cluster) Ask(ctx context.Context, id string) ([]Answer, error) {
	daemons, err := c.daemons(ctx)
	if err != nil {
		return nil, err
	}
	var out []Answer
	var errs []error
	for _, d := range daemons {
		status, err := d.Status(ctx)
		var nodes *api.NodeList
		if err == nil {
			nodes, err = d.Nodes(ctx)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("context %s: ask the daemon on %s: %w", c.Context, d.node, err))
			continue
		}
		out = append(out, Answer{Cluster: id, Node: d.node, MeshOff: status.Datapath.Mesh == "off",
			Nodes: nodes.Items, Clusters: status.Clusters, Problems: status.Problems})
	}
	slices.SortFunc(out, func(a, b Answer) int { return strings.Compare(a.Node, b.Node) })
	return out, errors.Join(errs...)
}
