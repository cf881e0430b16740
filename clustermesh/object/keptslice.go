package object

import (
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"strait.io/strait/clustermesh"
)

// Slice holds what Local reads of an EndpointSlice.
type Slice struct {
	ID
	// service is the name of the Service that the slice belongs to, empty if it names none.
	service string
	// imported is true if the endpoints are another cluster's: this cluster does not announce them.
	imported    bool
	addressType discoveryv1.AddressType
	ports       []unique.Handle[slicePort]
	endpoints   []sliceEndpoint
}

// slicePort is a port as written; its number is 0 if it has none.
type slicePort struct {
	name, protocol string
	port           int32
}

// sliceEndpoint is an endpoint, with its addresses as written.
type sliceEndpoint struct {
	addresses                   []string
	node, zone, hostname, pod   string
	ready, serving, terminating bool
}

// sliceFor keeps the endpoints of one node and those that name no node: other nodes announce their
// own.
func sliceFor(in *discoveryv1.EndpointSlice, node clustermesh.NodeName) Kept {
	if node == "" {
		return sliceFrom(in)
	}
	in.Endpoints = slices.DeleteFunc(in.Endpoints, func(e discoveryv1.Endpoint) bool {
		return e.NodeName != nil && *e.NodeName != "" && *e.NodeName != string(node)
	})
	if len(in.Endpoints) == 0 {
		in.Ports = nil
	}
	if kept := sliceFrom(in); !kept.mute() {
		return kept
	}
	return nil
}

func sliceFrom(in *discoveryv1.EndpointSlice) *Slice {
	s := &Slice{ID: idOf(in), service: in.Labels[discoveryv1.LabelServiceName],
		imported: ofOtherCluster(in), addressType: intern(in.AddressType)}
	if s.imported {
		return s
	}
	s.ports = make([]unique.Handle[slicePort], len(in.Ports))
	for i, p := range in.Ports {
		s.ports[i] = unique.Make(slicePort{deref(p.Name, ""), string(deref(p.Protocol, corev1.ProtocolTCP)), deref(p.Port, 0)})
	}
	s.endpoints = make([]sliceEndpoint, len(in.Endpoints))
	for i, e := range in.Endpoints {
		s.endpoints[i] = endpointFrom(e)
	}
	return s
}

// endpointFrom reads nil conditions as the API documents them: ready unless denied, serving the
// same as ready, not terminating.
func endpointFrom(in discoveryv1.Endpoint) sliceEndpoint {
	ready := deref(in.Conditions.Ready, true)
	e := sliceEndpoint{addresses: in.Addresses, node: intern(deref(in.NodeName, "")), zone: intern(deref(in.Zone, "")), hostname: deref(in.Hostname, ""),
		ready: ready, serving: deref(in.Conditions.Serving, ready), terminating: deref(in.Conditions.Terminating, false)}
	if in.TargetRef != nil && in.TargetRef.Kind == "Pod" {
		e.pod = in.TargetRef.Name
	}
	return e
}

// mute reports whether a slice adds nothing: it has no endpoint of this cluster, and nothing is
// wrong with it.
func (s *Slice) mute() bool {
	return s.imported || len(s.endpoints) == 0 && s.service != "" &&
		(s.addressType == discoveryv1.AddressTypeIPv4 || s.addressType == discoveryv1.AddressTypeIPv6)
}

func (s *Slice) insert(o *Objects) { o.EndpointSlices = append(o.EndpointSlices, s) }
