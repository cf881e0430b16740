package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

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

// NodeStatus is what the daemon of a node answers, or why it does not.
type NodeStatus struct {
	Node   string
	Status *api.Status
	// Nodes are those of the clusterset, as it sees them.
	Nodes []api.Node
	Err   error
}

// Statuses asks the daemons of all nodes, also those that are not ready, several at a time.
func (c *Cluster) Statuses(ctx context.Context) ([]NodeStatus, error) {
	found, err := list[corev1.Pod](ctx, c, pods, c.Namespace, daemonPods)
	if err != nil {
		return nil, fmt.Errorf("context %s: list the daemon's pods: %w", c.Context, err)
	}
	found = slices.DeleteFunc(found, func(p corev1.Pod) bool { return p.Spec.NodeName == "" }) // it waits for a node
	out := make([]NodeStatus, len(found))
	var g errgroup.Group
	g.SetLimit(askedAtOnce)
	for i := range found {
		g.Go(func() error {
			out[i] = status(ctx, c.daemon(&found[i]), notReady(&found[i]))
			return nil
		})
	}
	_ = g.Wait() // each has its own error
	slices.SortFunc(out, func(a, b NodeStatus) int { return strings.Compare(a.Node, b.Node) })
	return out, nil
}

// askedAtOnce is how many daemons are asked at a time.
const askedAtOnce = 16

// status asks one daemon. Why is why its pod is not ready; empty if it is.
func status(ctx context.Context, d daemon, why string) NodeStatus {
	s := NodeStatus{Node: d.node}
	if s.Status, s.Err = d.Status(ctx); s.Err == nil {
		var nodes *api.NodeList
		if nodes, s.Err = d.Nodes(ctx); s.Err == nil {
			s.Nodes = nodes.Items
		}
	}
	if s.Err != nil && why != "" {
		s.Err = fmt.Errorf("its pod is not ready: %s", why)
	}
	return s
}
