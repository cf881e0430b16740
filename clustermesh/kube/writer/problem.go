package writer

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
)

// problemOf says what a person should know of a write that failed. Races with other writers settle by themselves.
func problemOf(o mcs.Op, err error) (clustermesh.Problem, bool) {
	p := clustermesh.Problem{Object: o.Target(), Message: fmt.Sprintf("%s: %v", o.Verb, err), Try: "see whether the API server can be reached; it is tried again"}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		p.Message = fmt.Sprintf("%s: %s", o.Verb, status.Status().Message)
		if d := status.Status().Details; d != nil && len(d.Causes) > 0 {
			p.Field = strings.TrimPrefix(d.Causes[0].Field, ".")
		}
	}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(err):
		return p, false // it goes, or is gone: so does the rest
	case apierrors.IsAlreadyExists(err) && o.Service != nil:
		return p, false // mcs reports it
	case apierrors.IsAlreadyExists(err):
		p.Try = "if it is not strait's, rename or delete it"
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		p.Try = "remove this field from the manifest of whoever else writes it"
	case apierrors.IsConflict(err):
		return p, false
	case strings.Contains(p.Message, "admission webhook"), strings.Contains(p.Message, "ValidatingAdmissionPolicy"):
		p.Try = "exempt strait's account from that policy, or change the Service that is exported"
	case apierrors.IsForbidden(err):
		p.Try = "let strait's account write it: see the ClusterRole in install"
	case addressRefused(o, err):
		p.Try, p.Warning = "nothing: if it is refused again, the import gets another address", true
	case apierrors.IsInvalid(err) && blames(err, "spec.ipFamilies"):
		p.Try, p.Warning = "give the cluster Services of that IP family, or the exported Services one of this cluster", true
	case apierrors.IsInvalid(err):
		p.Try = "change the exported Services so that the field is accepted here"
	}
	return p, true
}

// unsettled reports that what we write does not stay.
func unsettled(o mcs.Op) clustermesh.Problem {
	return clustermesh.Problem{
		Object:  o.Target(),
		Message: "does not stay as strait writes it: somebody else changes it, an admission webhook perhaps",
		Try:     "look at metadata.managedFields for who does, and stop it",
	}
}

// blames reports whether the API server refused because of a field, or one below it.
func blames(err error, field string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, c := range status.Status().Details.Causes {
		if strings.HasPrefix(c.Field, field) {
			return true
		}
	}
	return false
}

// addressRefused reports that a Service cannot be made with the addresses that it asks for.
func addressRefused(o mcs.Op, err error) bool {
	return o.Service != nil && len(o.Service.Spec.ClusterIPs) > 0 && apierrors.IsInvalid(err) &&
		(blames(err, "spec.clusterIP") || blames(err, "spec.ipFamil"))
}
