// Package policy decides what a ServicePolicy means: which Services of which clusters exist in which
// others, and as what.
//
// Inputs are documents; outputs are policies, all that is wrong with them, and which Services they
// select. Pure. It must not know where documents come from, nor what is made of the Services.
package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/api/v1alpha1"
)

// APIVersion and Kind are those of a document.
var (
	APIVersion = v1alpha1.SchemeGroupVersion.String()
	Kind       = v1alpha1.Kind
)

// Type is the TypeMeta of a document.
var Type = metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind}

// The types of a document are those of package api, which other programs use too.
type (
	Policy    = v1alpha1.ServicePolicy
	List      = v1alpha1.ServicePolicyList
	Spec      = v1alpha1.ServicePolicySpec
	Term      = v1alpha1.ServiceTerm
	As        = v1alpha1.As
	Endpoints = v1alpha1.Endpoints
	Copy      = v1alpha1.Copy
	Status    = v1alpha1.ServicePolicyStatus
	Skipped   = v1alpha1.SkippedService
)

// The kinds of As and of Endpoints.
const (
	Import    = v1alpha1.Import
	Mirror    = v1alpha1.Mirror
	Join      = v1alpha1.Join
	Pods      = v1alpha1.Pods
	ClusterIP = v1alpha1.ClusterIP
)

// Reasons why a Service that a policy selects is left out.
const (
	Barred           = v1alpha1.Barred
	ExternalName     = v1alpha1.ExternalName
	InvalidName      = v1alpha1.InvalidName
	NamespaceMissing = v1alpha1.NamespaceMissing
	TargetExists     = v1alpha1.TargetExists
	Conflict         = v1alpha1.Conflict
	NotSupported     = v1alpha1.NotSupported
	NoEntry          = v1alpha1.NoEntry
	Refused          = v1alpha1.Refused
)

// WithDefaults returns a spec in which what was empty is filled in.
func WithDefaults(s Spec) Spec {
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
