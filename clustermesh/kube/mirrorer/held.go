package mirrorer

import (
	discoveryv1 "k8s.io/api/discovery/v1"

	"strait.io/strait/clustermesh/written"
)

// Held are the Services of one pass that could not be created. Their EndpointSlices are not written:
// another Service that has the name would get the endpoints. The zero value is empty.
type Held map[[2]string]bool

// Failed takes note of a write that failed.
func (h *Held) Failed(o written.Op) {
	if o.Verb == written.Create && o.Service() != nil {
		if *h == nil {
			*h = Held{}
		}
		(*h)[key(o.Service())] = true
	}
}

// Back reports whether a write has to be left out.
func (h Held) Back(o written.Op) bool {
	return o.Slice() != nil && o.Verb != written.Delete && h[[2]string{o.Slice().Namespace, o.Slice().Labels[discoveryv1.LabelServiceName]}]
}
