package clustermesh

import (
	"net/netip"
	"slices"

	"strait.io/strait/internal/l4"
)

// Endpoint is one address of one exported service, with the ports that are alike there: what its
// EndpointSlice reports of them is the same. So there can be several of one address.
type Endpoint struct {
	Service ServiceName `cbor:"1,keyasint" json:"service"`
	Addr    netip.Addr  `cbor:"2,keyasint" json:"addr"`
	// Ports are what the pod listens on. A Service's port is matched to them by name and protocol.
	Ports []EndpointPort `cbor:"3,keyasint,omitempty" json:"ports,omitempty"`
	// Node runs the pod; empty for endpoints that name none (selectorless Services).
	Node     NodeName `cbor:"4,keyasint,omitempty" json:"node,omitempty"`
	Zone     string   `cbor:"5,keyasint,omitempty" json:"zone,omitempty"`
	Hostname string   `cbor:"6,keyasint,omitempty" json:"hostname,omitempty"`
	// Pod is the pod's name, for people only: it decides nothing.
	Pod string `cbor:"7,keyasint,omitempty" json:"pod,omitempty"`
	// Ready, Serving and Terminating are the conditions of the EndpointSlice API. A pod that is
	// ready is used although it terminates: Kubernetes reports that of Services with
	// publishNotReadyAddresses only.
	Ready       bool `cbor:"8,keyasint,omitempty" json:"ready"`
	Serving     bool `cbor:"9,keyasint,omitempty" json:"serving"`
	Terminating bool `cbor:"10,keyasint,omitempty" json:"terminating"`
	// OnHost is true if the pod uses the network of its node, and the node lets other clusters
	// reach its ports at Node.Inside.
	OnHost bool `cbor:"11,keyasint,omitempty" json:"onHost,omitempty"`
}

// Equal reports whether two endpoints are identical.
func (e Endpoint) Equal(o Endpoint) bool {
	return e.Service == o.Service && e.Addr == o.Addr && e.Node == o.Node && e.Zone == o.Zone && e.Hostname == o.Hostname && e.Pod == o.Pod &&
		e.Ready == o.Ready && e.Serving == o.Serving && e.Terminating == o.Terminating && e.OnHost == o.OnHost &&
		slices.Equal(e.Ports, o.Ports)
}

// ClusterEndpoint is an endpoint with its cluster, and whether its node is dead.
type ClusterEndpoint struct {
	Endpoint
	Cluster ClusterName
	// Dead is true if the endpoint's node is dead by State.Dead.
	Dead bool
}

// EndpointPort is a named port of a pod.
type EndpointPort struct {
	Name  string   `cbor:"1,keyasint,omitempty" json:"name,omitempty"`
	Proto l4.Proto `cbor:"2,keyasint" json:"protocol"`
	Port  uint16   `cbor:"3,keyasint" json:"port"`
}

// OneOfEachName splits ports into lists that have each name once, as an EndpointSlice must: several
// processes at one address can serve one port of a Service. No ports are one empty list.
func OneOfEachName(ports []EndpointPort) [][]EndpointPort {
	out, times := make([][]EndpointPort, 1), map[string]int{}
	for _, p := range ports {
		nth := times[p.Name]
		times[p.Name]++
		if nth == len(out) {
			out = append(out, nil)
		}
		out[nth] = append(out[nth], p)
	}
	return out
}
