package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"strait.io/strait/internal/ovn"
)

// ReadOVN returns the annotation of OVN-Kubernetes by the names of the Nodes that have it. Nodes
// that may not be read have none.
func (c *Cluster) ReadOVN(ctx context.Context) (map[string]string, error) {
	machines, err := list[corev1.Node](ctx, c, nodes, "", "")
	if err != nil && !unsaid(err) {
		return nil, fmt.Errorf("context %s: list Nodes: %w", c.Context, err)
	}
	out := map[string]string{}
	for _, n := range machines {
		if value, has := n.Annotations[ovn.Annotation]; has {
			out[n.Name] = value
		}
	}
	return out, nil
}
