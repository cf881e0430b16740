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

// The verbs. Create must fail if an object of that name exists: it may not be strait's.
const (
	Create      Verb = "create"
	Apply       Verb = "apply"
	ApplyStatus Verb = "apply status"
	Delete      Verb = "delete"
)

// Op is one write. Exactly one of Import, Service, Slice and Export is set; it holds only the
// fields to write. Except with Create, it has the UID of the existing object, which is the
// precondition.
type Op struct {
	Verb    Verb
	Import  *mcsv1beta1.ServiceImport
	Service *corev1.Service
	Slice   *discoveryv1.EndpointSlice
	Export  *mcsv1beta1.ServiceExport
	// Group is the API group of an Import or Export that is not of the MCS API, such as OldGroup.
	Group string
	// Force takes fields over from other writers. It is set only for strait's own objects, and for
	// the status of exports and imports.
	Force bool
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
}

// Object returns the metadata of the operation's object.
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

// Kind returns the kind of the operation's object, with its group if Group is set.
func (o Op) Kind() string {
	switch {
	case o.Group != "" && o.Import != nil:
		return mcsv1beta1.ServiceImportKindName + "." + o.Group
	case o.Group != "":
		return mcsv1beta1.ServiceExportKindName + "." + o.Group
	case o.Import != nil:
		return mcsv1beta1.ServiceImportKindName
	case o.Service != nil:
		return "Service"
	case o.Slice != nil:
		return "EndpointSlice"
	}
	return mcsv1beta1.ServiceExportKindName
}

// String describes the operation to people: "apply status ServiceImport default/serve".
func (o Op) String() string { return string(o.Verb) + " " + o.Target() }

// Target names the operation's object: "ServiceImport default/serve".
func (o Op) Target() string {
	return o.Kind() + " " + clustermesh.ServiceName{Namespace: o.Object().GetNamespace(), Name: o.Object().GetName()}.String()
}

// Have is what the API server has for one service. The objects are read, never changed.
type Have struct {
	Import *mcsv1beta1.ServiceImport
	Export *mcsv1beta1.ServiceExport
	// OldExport, OldImport and GKEImport are of the groups OldGroup and GKEGroup.
	OldExport            *mcsv1beta1.ServiceExport
	OldImport, GKEImport *mcsv1beta1.ServiceImport
	// Services and Slices are those for which ServiceOf and SliceOf name this service's import.
	// There should be at most one Service.
	Services []*corev1.Service
	Slices   []Slice
	// Trouble is what could not be written last.
	Trouble Trouble
	// API is what the API server serves of the MCS API. What its schemas do not have is not wanted,
	// or it would be written again and again.
	API API
}

// Trouble is what of a service could not be written and why, as the API server reported. Except for
// RefusedSlices, it is about the derived Service. The zero value means no trouble.
type Trouble struct {
	// NameTaken: a Service of that name exists and is not strait's. OwnNameTaken: the same is true
	// of the import's own name, for which there is an alternative.
	NameTaken, OwnNameTaken bool
	// FamilyNotSupported: the cluster has no ClusterIPs of the import's IP family.
	FamilyNotSupported bool
	// RefusedDistribution is a spec.trafficDistribution that this API server does not know.
	RefusedDistribution string
	// AddressRefused counts how often in a row the API server refused the addresses that the import
	// has: they are in use by now, or out of its range.
	AddressRefused int
	// Refused is the API server's message when it last refused the Service for another reason, such
	// as an exhausted quota. That may never change, so only what needs the Service waits for it.
	Refused string
	// RefusedSlices is what the API server said to the first EndpointSlice that it last refused.
	RefusedSlices string
}
