package mcs

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/written"
)

// ImportOf returns an operation's object if it is a ServiceImport of any group, otherwise nil.
func ImportOf(o written.Op) *mcsv1beta1.ServiceImport {
	i, _ := o.Object.(*mcsv1beta1.ServiceImport)
	return i
}

// ExportOf returns an operation's object if it is a ServiceExport of any group, otherwise nil.
func ExportOf(o written.Op) *mcsv1beta1.ServiceExport {
	e, _ := o.Object.(*mcsv1beta1.ServiceExport)
	return e
}

// Foreign reports whether an operation's import or export is of another API group than the MCS API's.
func Foreign(o written.Op) bool { return strings.Contains(o.Kind, ".") }

// inGroup returns the name of a kind of the MCS API in another group; the same if the group is empty.
func inGroup(kind, group string) string {
	if group == "" {
		return kind
	}
	return kind + "." + group
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
	// Hold keeps the conditions for the owner of the Service as they are: they changed too often.
	Hold bool
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
	// RefusedSlices is the API server's answer to the first EndpointSlice that it last refused.
	RefusedSlices string
}
