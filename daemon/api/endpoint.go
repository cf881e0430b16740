package api

import "fmt"

// Where is "cluster/node", or the cluster alone for an endpoint that names no node.
func (e Endpoint) Where() string {
	if e.Node == "" {
		return e.Cluster
	}
	return e.Cluster + "/" + e.Node
}

// Away is the round-trip time to the endpoint's node, or None.
func (e Endpoint) Away() string {
	if e.RTT == 0 {
		return None
	}
	return fmt.Sprintf("%.1f ms", e.RTT)
}

// Down returns why the tunnel carries nothing, or no large packets; empty unless that is known.
func (t *Tunnel) Down() string {
	switch t.State {
	case "narrow":
		return "only small packets pass"
	case "one-way":
		return "packets pass in one direction only"
	case "silent":
		return "nothing passes"
	case "never":
		return "no handshake"
	}
	return ""
}
