package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is the kind of a ServicePolicy.
const Kind = "ServicePolicy"

// SchemeGroupVersion is the group and version of the types. GroupVersion is the same, under the
// name that controller-runtime's users know.
var (
	SchemeGroupVersion = schema.GroupVersion{Group: "strait.io", Version: "v1alpha1"}
	GroupVersion       = SchemeGroupVersion
)

// AddToScheme adds the types to a scheme: for controller-runtime, and for other clients that decode
// into them.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion, &ServicePolicy{}, &ServicePolicyList{})
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}

// Resource returns a resource of the group, as generated code names it in errors.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}
