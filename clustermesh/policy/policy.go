// Package policy decides what a ServicePolicy means: which Services of which clusters exist in which
// others, and as what.
//
// Inputs are documents; outputs are policies, all that is wrong with them, and which Services they
// select. Pure. It must not know where documents come from, nor what is made of the Services.
package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// APIVersion and Kind are those of a document.
const (
	APIVersion = "strait.io/v1alpha1"
	Kind       = "ServicePolicy"
)

// Type is the TypeMeta of a document.
var Type = metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind}

// Policy is a ServicePolicy. The same document may be given to every cluster; each carries out only
// its own part.
type Policy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec `json:"spec"`
	// Status is a cluster's own part, in its own API server.
	Status Status `json:"status,omitzero"`
}

// List is a list of policies.
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Policy `json:"items"`
}

// Spec is what a policy is to do.
type Spec struct {
	// From and To are ids of clusters: whose Services, and where. "*" is all. A cluster never gets
	// its own Services.
	From []string `json:"from"`
	To   []string `json:"to"`
	// Select lists terms. A Service is selected if one of them fits.
	Select []Term `json:"select"`
	// As is empty for Import.
	As As `json:"as,omitempty"`
	// Name and Namespace are templates over {name}, {namespace} and {cluster}. Empty means {name}
	// and {namespace}.
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// CreateNamespace makes a namespace that is missing. It is never deleted.
	CreateNamespace bool `json:"createNamespace,omitempty"`
	// Endpoints is empty for Pods.
	Endpoints Endpoints `json:"endpoints,omitempty"`
	Copy      Copy      `json:"copy,omitzero"`
	// ExposeAs is the type of the Service that is made; empty for ClusterIP.
	ExposeAs string `json:"exposeAs,omitempty"`
}

// Term selects Services that fit all of its fields.
type Term struct {
	// Namespaces are exact names. Empty means every namespace that may export.
	Namespaces []string `json:"namespaces,omitempty"`
	// Names are regular expressions (RE2) for the whole name. Empty means every name.
	Names  []string              `json:"names,omitempty"`
	Labels *metav1.LabelSelector `json:"labels,omitempty"`
}

// As is what a Service becomes in another cluster.
type As string

// The kinds of As.
const (
	// Import: as if it had a ServiceExport.
	Import As = "import"
	// Mirror: a Service without selector, with EndpointSlices, under a plain name.
	Mirror As = "mirror"
	// Join: more backends of the Service that is there.
	Join As = "join"
)

// Endpoints is what the endpoints of a mirror are.
type Endpoints string

// The kinds of Endpoints.
const (
	Pods      Endpoints = "pods"
	ClusterIP Endpoints = "clusterIP"
)

// Copy lists patterns of the keys of labels and annotations to copy, as in app or team/*. Without
// patterns, labels are copied whose key has no domain of Kubernetes, and no annotations.
type Copy struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// Reasons why a Service that a policy selects is left out.
const (
	Barred           = "Barred"
	ExternalName     = "ExternalName"
	InvalidName      = "InvalidName"
	NamespaceMissing = "NamespaceMissing"
	TargetExists     = "TargetExists"
	Conflict         = "Conflict"
	NotSupported     = "NotSupported"
	// NoEntry: no node of the source's cluster is the entry to its ClusterIP.
	NoEntry = "NoEntry"
	// Refused: the API server refuses the object.
	Refused = "Refused"
)

// WithDefaults fills in what is empty.
func (s Spec) WithDefaults() Spec {
	set := func(to *string, value string) {
		if *to == "" {
			*to = value
		}
	}
	set((*string)(&s.As), string(Import))
	set(&s.Name, "{name}")
	set(&s.Namespace, "{namespace}")
	set((*string)(&s.Endpoints), string(Pods))
	set(&s.ExposeAs, "ClusterIP")
	return s
}
