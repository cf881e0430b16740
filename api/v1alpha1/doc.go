// Package v1alpha1 holds the types of strait.io/v1alpha1, for Go programs that write a ServicePolicy
// or read its status. strait's own packages use the same types, and the CRD is generated from them.
//
// Inputs and outputs are objects of an API server. It must not know what a policy means
// (clustermesh/policy does), nor import any other package of strait: a program that uses it links
// nothing else.
//
// +kubebuilder:object:generate=true
// +groupName=strait.io
// +groupGoName=Strait
package v1alpha1

//go:generate ../generate.sh
