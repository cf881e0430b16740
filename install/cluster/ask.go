package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

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
	for _, s := range askAll(ctx, daemons) {
		if s.Err != nil {
			errs = append(errs, fmt.Errorf("context %s: ask the daemon on %s: %w", c.Context, s.Node, s.Err))
			continue
		}
		out = append(out, Answer{Cluster: id, Node: s.Node, MeshOff: s.Status.Datapath.Mesh == "off",
			Nodes: s.Nodes, Clusters: s.Status.Clusters, Problems: s.Status.Problems})
	}
	return out, errors.Join(errs...)
}

// NodeStatus is what the daemon of a node answers, or why it does not.
type NodeStatus struct {
	Node   string
	Status *api.Status
	// Nodes are those of the clusterset, as it sees them.
	Nodes []api.Node
	Err   error
}

// Statuses asks the daemons of all nodes, also those that are not ready.
func (c *Cluster) Statuses(ctx context.Context) ([]NodeStatus, error) {
	daemons, err := c.allDaemons(ctx)
	if err != nil {
		return nil, err
	}
	return askAll(ctx, daemons), nil
}

// askedAtOnce is how many daemons are asked at a time.
const askedAtOnce = 16

// askAll asks several daemons at a time. The answers are in the order of their nodes.
func askAll(ctx context.Context, daemons []daemon) []NodeStatus {
	out := make([]NodeStatus, len(daemons))
	var g errgroup.Group
	g.SetLimit(askedAtOnce)
	for i, d := range daemons {
		g.Go(func() error {
			out[i] = d.ask(ctx)
			return nil
		})
	}
	_ = g.Wait() // each has its own error
	slices.SortFunc(out, func(a, b NodeStatus) int { return strings.Compare(a.Node, b.Node) })
	return out
}

func (d daemon) ask(ctx context.Context) NodeStatus {
	s := NodeStatus{Node: d.node}
	if s.Status, s.Err = d.Status(ctx); s.Err == nil {
		var nodes *api.NodeList
		if nodes, s.Err = d.Nodes(ctx); s.Err == nil {
			s.Nodes = nodes.Items
		}
	}
	if s.Err != nil && d.unready != "" {
		s.Err = fmt.Errorf("its pod is not ready: %s", d.unready)
	}
	return s
}
