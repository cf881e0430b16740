package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ready is the type of the condition in a status.
const Ready = "Ready"

// Reasons of the condition Ready. It is false for the first two.
const (
	// Invalid: the policy has mistakes, and nothing is done by it.
	Invalid = "Invalid"
	// Overridden: the daemon's configuration has a policy of the same name.
	Overridden = "Overridden"
	// NotConcerned: the cluster neither shares nor gets Services by it.
	NotConcerned = "NotConcerned"
	// SomeSkipped: Services are left out.
	SomeSkipped = "SomeSkipped"
	InForce     = "InForce"
)

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

// ServicePolicyStatus is what the leader of a cluster writes into the policy of its own API server.
type ServicePolicyStatus struct {
	// The generation of the spec that this is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// The id of the cluster.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// How many of the cluster's own Services the policy selects, if the cluster is in spec.from.
	// +optional
	Selected int `json:"selected"`
	// How many of these other clusters may use.
	// +optional
	Shared int `json:"shared"`
	// How many mirrors of other clusters' Services the cluster has by the policy.
	// +optional
	Mirrored int `json:"mirrored"`
	// How many Services that other clusters share by the policy are imports here.
	// +optional
	Imported int `json:"imported"`
	// How many of the cluster's own Services get other clusters' pods by the policy.
	// +optional
	Joined int `json:"joined"`
	// The first Services that are left out.
	// +optional
	// +listType=atomic
	Skipped []SkippedService `json:"skipped,omitempty"`
	// How many more are left out.
	// +optional
	SkippedMore int `json:"skippedMore,omitempty"`
	// Ready is true if the policy is in force. Its reason is InForce, SomeSkipped or NotConcerned, and if it
	// is false, Invalid or Overridden.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SkippedService is a Service that a policy selects, and that is left out.
type SkippedService struct {
	// CLUSTER/NAMESPACE/NAME.
	Service string `json:"service"`
	// One word, such as NamespaceMissing or TargetExists.
	Reason string `json:"reason"`
	// What is wrong, for people.
	// +optional
	Message string `json:"message,omitempty"`
}
