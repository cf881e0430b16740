package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=spol,categories=strait
// +kubebuilder:printcolumn:name="As",type=string,JSONPath=`.spec.as`,description="What the Services become in other clusters: import, mirror or join"
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.selected`,description="How many of this cluster's own Services the policy selects"
// +kubebuilder:printcolumn:name="Shared",type=integer,JSONPath=`.status.shared`,description="How many of these other clusters may use"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the policy is in force in this cluster"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the policy was created"
// +kubebuilder:printcolumn:name="From",type=string,priority=1,JSONPath=`.spec.from`,description="The clusters whose Services are shared"
// +kubebuilder:printcolumn:name="To",type=string,priority=1,JSONPath=`.spec.to`,description="The clusters that get them"
// +kubebuilder:printcolumn:name="Mirrored",type=integer,priority=1,JSONPath=`.status.mirrored`,description="How many mirrors of other clusters' Services this cluster has by the policy"
// +kubebuilder:printcolumn:name="Imported",type=integer,priority=1,JSONPath=`.status.imported`,description="How many Services that other clusters share by the policy are imports here"
// +kubebuilder:printcolumn:name="Joined",type=integer,priority=1,JSONPath=`.status.joined`,description="How many of this cluster's own Services get other clusters' pods by the policy"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why Ready is what it is: InForce, SomeSkipped, NotConcerned, Invalid or Overridden"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="What is wrong, or how many Services are left out"

// ServicePolicy says which Services of which clusters exist in which others, and as what. The same object may
// be given to every cluster; each carries out only its own part.
type ServicePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	Spec              ServicePolicySpec `json:"spec"`
	// What the cluster of this API server does by the policy. Its leader writes it.
	// +optional
	Status ServicePolicyStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// ServicePolicyList is a list of policies.
type ServicePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ServicePolicy `json:"items"`
}

// The rules below write __as__ and __namespace__, since Kubernetes 1.30 knows no other form for names that are keywords of CEL.

// ServicePolicySpec is what a policy is to do.
//
// +kubebuilder:validation:XValidation:rule="self.__as__ != 'join' || !(has(self.name) || has(self.__namespace__) || has(self.createNamespace) || has(self.copy) || has(self.exposeAs))",message="as: join adds to the Service that is there, so it makes nothing: leave out name, namespace, createNamespace, copy and exposeAs"
// +kubebuilder:validation:XValidation:rule="self.__as__ == 'mirror' || !has(self.endpoints) || self.endpoints == 'pods'",message="only as: mirror leads to ClusterIPs"
// +kubebuilder:validation:XValidation:rule="self.__as__ != 'import' || !has(self.name) || self.name == '{name}'",message="as: import keeps the name; a Service of another name is as: mirror"
// +kubebuilder:validation:XValidation:rule="self.__as__ != 'import' || !has(self.exposeAs) || self.exposeAs == 'ClusterIP'",message="as: import makes Services of type ClusterIP; another type takes as: mirror"
// +kubebuilder:validation:XValidation:rule="self.__as__ != 'import' || !has(self.__namespace__) || self.__namespace__ == '{namespace}'",message="as: import keeps the namespace: a namespace means the same in all clusters (KEP-1645)"
type ServicePolicySpec struct {
	// Ids of the clusters whose Services are shared. "*" is all. A cluster never gets its own Services.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	From []string `json:"from"`
	// Ids of the clusters that get them. "*" is all.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	To []string `json:"to"`
	// A Service is selected if one of the terms fits. A term fits if all that it says does.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Select []ServiceTerm `json:"select"`
	// What a Service becomes. import: as if it had a ServiceExport. join: more backends of the Service of that
	// name. mirror: a Service without selector, with EndpointSlices.
	// +optional
	// +kubebuilder:default=import
	As As `json:"as,omitempty"`
	// A template for the name, over {name}, {namespace} and {cluster}.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// A template for the namespace, over the same.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Namespace string `json:"namespace,omitempty"`
	// Makes a namespace that a mirror or an import needs and that is missing. It is never deleted.
	// +optional
	CreateNamespace bool `json:"createNamespace,omitempty"`
	// What the endpoints of a mirror are.
	// +optional
	Endpoints Endpoints `json:"endpoints,omitempty"`
	// Patterns of the keys of labels and annotations to copy, as in app or team/*.
	// +optional
	Copy Copy `json:"copy,omitzero"`
	// The type of a mirror. Other types than ClusterIP take the chart's value exposeAs. A mirror of a headless
	// Service is headless.
	// +optional
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	ExposeAs string `json:"exposeAs,omitempty"`
}

// ServiceTerm selects Services that fit all of its fields.
//
// +kubebuilder:validation:XValidation:rule="(has(self.namespaces) && self.namespaces.size() > 0) || (has(self.names) && self.names.size() > 0) || has(self.labels)",message="an empty term would mean nothing in one system and everything in another; all Services are {names: ['.*']}"
type ServiceTerm struct {
	// Exact names. Without them, every namespace that may export.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitempty"`
	// Regular expressions (RE2) for the whole name. Without them, every name.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=256
	Names []string `json:"names,omitempty"`
	// A selector for the labels of the Service.
	// +optional
	Labels *metav1.LabelSelector `json:"labels,omitempty"`
}

// As is what a Service becomes in another cluster.
//
// +kubebuilder:validation:Enum=import;mirror;join
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
//
// +kubebuilder:validation:Enum=pods;clusterIP
type Endpoints string

// The kinds of Endpoints.
const (
	Pods      Endpoints = "pods"
	ClusterIP Endpoints = "clusterIP"
)

// Copy lists patterns of the keys of labels and annotations to copy, as in app or team/*. Without
// patterns, labels are copied whose key has no domain of Kubernetes, and no annotations.
type Copy struct {
	// Without patterns, labels are copied whose key has no domain of Kubernetes.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Labels []string `json:"labels,omitempty"`
	// Without patterns, none. An annotation that controllers act on must be named in full.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Annotations []string `json:"annotations,omitempty"`
}
