package mcs

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
)

// Verb is what an operation does.
type Verb string

// The verbs. Create must fail if there is an object of that name: it may be somebody else's.
const (
	Create      Verb = "create"
	Apply       Verb = "apply"
	ApplyStatus Verb = "apply status"
	Delete      Verb = "delete"
)

// Op is one write. Exactly one of Import, Service, Slice and Export is set; it holds only the fields to write.
// Except with Create it has the UID of the object that is meant, which is the precondition.
type Op struct {
	Verb    Verb
	Import  *mcsv1beta1.ServiceImport
	Service *corev1.Service
	Slice   *discoveryv1.EndpointSlice
	Export  *mcsv1beta1.ServiceExport
	// Force takes fields from other writers. Set for objects of ours alone.
	Force bool
	// Events are to be told when the operation has succeeded.
	Events []Event
}

// Event is what to tell people about an object.
type Event struct {
	Warning bool
	Reason  string
	Message string
	// Change identifies the change that is reported. Leaders that find the same object in the same state give it the same
	// one, so that the API server has one Event of it even if two leaders overlap.
	Change string
}

// Object is the metadata of the operation's object.
func (o Op) Object() metav1.Object {
	switch {
	case o.Import != nil:
		return o.Import
	case o.Service != nil:
		return o.Service
	case o.Slice != nil:
		return o.Slice
	}
	return o.Export
}

// Kind is the kind of the operation's object.
func (o Op) Kind() string {
	switch {
	case o.Import != nil:
		return mcsv1beta1.ServiceImportKindName
	case o.Service != nil:
		return "Service"
	case o.Slice != nil:
		return "EndpointSlice"
	}
	return mcsv1beta1.ServiceExportKindName
}

// String is the operation for people: "apply status ServiceImport default/serve".
func (o Op) String() string { return string(o.Verb) + " " + o.Target() }

// Target names the object: "ServiceImport default/serve".
func (o Op) Target() string {
	return o.Kind() + " " + clustermesh.ServiceName{Namespace: o.Object().GetNamespace(), Name: o.Object().GetName()}.String()
}

// Have is what the API server has of one service. The objects are read, never changed.
type Have struct {
	Import *mcsv1beta1.ServiceImport
	Export *mcsv1beta1.ServiceExport
	// Services and Slices are those with the labels of Owned; more than one Service is one too many.
	Services []*corev1.Service
	Slices   []Slice
	// Trouble is what last kept the derived Service from being made.
	Trouble Trouble
}

// Trouble is why the derived Service could not be made, as the API server said. The zero value is none.
type Trouble struct {
	// NameTaken: a Service of that name is there and is not strait's. OwnNameTaken says so of the import's own name, for
	// which there is another.
	NameTaken, OwnNameTaken bool
	// FamilyNotSupported: the cluster has no ClusterIPs of the import's IP family.
	FamilyNotSupported bool
	// AddressRefused is how often in a row the API server refused the addresses that the import has: another has them by
	// now, or they are out of its range.
	AddressRefused int
}
