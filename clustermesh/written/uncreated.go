package written

import (
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Uncreated are the Services of one pass that could not be created. Their EndpointSlices are not written:
// another Service that has the name would get the endpoints. The zero value is empty.
type Uncreated map[[2]string]bool

// Failed takes note of a write that failed.
func (u *Uncreated) Failed(o Op) {
	if o.Verb == Create && o.Service() != nil {
		if *u == nil {
			*u = Uncreated{}
		}
		(*u)[[2]string{o.Object.GetNamespace(), o.Object.GetName()}] = true
	}
}

// Blocks reports whether a write has to be left out.
func (u Uncreated) Blocks(o Op) bool {
	return o.Slice() != nil && o.Verb != Delete && u[[2]string{o.Slice().Namespace, o.Slice().Labels[discoveryv1.LabelServiceName]}]
}
