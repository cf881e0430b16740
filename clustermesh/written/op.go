package written

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Verb is what an operation does.
type Verb string

// The verbs. Create must fail if an object of that name exists: it may not be strait's.
const (
	Create      Verb = "create"
	Update      Verb = "update"
	Apply       Verb = "apply"
	ApplyStatus Verb = "apply status"
	Delete      Verb = "delete"
	// Adopt takes over the fields that a Create wrote, so that a later Apply can remove them.
	Adopt Verb = "adopt"
)

// Op is one write of one object. To Create and to Apply, the object holds only the fields to write; to
// Update, it is the existing object with what must change. Except with Create, it has the UID of the
// existing object, which is the precondition.
type Op struct {
	Verb Verb
	// Kind is that of a row in Rows.
	Kind   string
	Object metav1.Object
	// Version is that of the kind's API group; empty is the row's.
	Version string
	// NoSubresource is set if the kind has no subresource status, so that a status is applied to the
	// object itself.
	NoSubresource bool
	// Patch is the JSON patch of Adopt.
	Patch []byte
	// Force takes fields over from other writers. It is set only for strait's own objects, and for
	// statuses.
	Force bool
	// Early delays the operation: the object to delete, or its Service, has another name now, under
	// which there is no Service with endpoints yet. Clients should find one of the two.
	Early bool
	// Restates is set if it changes how a service fares, in a condition. That is bounded in time.
	Restates bool
	// Events are reported when the operation has succeeded.
	Events []Event
}

// Event is what to tell people about an object.
type Event struct {
	Warning bool
	Reason  string
	Message string
	// Change identifies the reported change. Leaders that find the same object in the same state
	// give the change the same name, so the API server has one Event for it even if two leaders
	// overlap.
	Change string
	// News is how a service fares now. It is bounded in time and number, and left out of a backlog.
	News bool
	// Service is set if the Service of the object's name gets the Event too: its owner looks there.
	Service bool
}

// Service returns the operation's object if it is a Service, otherwise nil.
func (o Op) Service() *corev1.Service {
	s, _ := o.Object.(*corev1.Service)
	return s
}

// Slice returns the operation's object if it is an EndpointSlice, otherwise nil.
func (o Op) Slice() *discoveryv1.EndpointSlice {
	s, _ := o.Object.(*discoveryv1.EndpointSlice)
	return s
}

// String describes the operation to people: "apply status ServiceImport default/serve".
func (o Op) String() string { return string(o.Verb) + " " + o.Target() }

// Target names the operation's object: "ServiceImport default/serve", "Namespace shop".
func (o Op) Target() string {
	if o.Object.GetNamespace() == "" {
		return o.Kind + " " + o.Object.GetName()
	}
	return o.Kind + " " + o.Object.GetNamespace() + "/" + o.Object.GetName()
}
