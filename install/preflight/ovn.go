package preflight

import (
	"fmt"
	"slices"

	"strait.io/strait/internal/ovn"
)

// OVN is what is known of OVN-Kubernetes in a cluster: the value of ovn.Annotation by the names of
// the Nodes that have it.
type OVN map[string]string

// Warnings returns what to expect of its gateways' mode beside strait, and what to do about it.
func (o OVN) Warnings() []string {
	var bypass []string
	for node, annotation := range o {
		if ovn.Bypasses(annotation) {
			bypass = append(bypass, node)
		}
	}
	if len(bypass) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Node %s: metadata.annotations[%s]: OVN-Kubernetes is in gateway mode shared (on %d of %d nodes): packets of pods leave without seeing "+
		"the node's routes, so pods reach no other cluster by tunnel; set routingViaHost: true in its gatewayConfig", slices.Min(bypass), ovn.Annotation, len(bypass), len(o))}
}
