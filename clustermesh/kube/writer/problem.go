package writer

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/problem"
)

// problemOf returns the Problem for a write that failed; false for failures that need no action by
// a person, such as races with other writers, which settle by themselves.
func problemOf(o written.Op, err error) (clustermesh.Problem, bool) {
	p := clustermesh.Problem{Code: problem.WriteRefused, Object: o.Target(), Message: fmt.Sprintf("%s: %v", o.Verb, err), Try: "check that the API server can be reached; strait retries by itself"}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		p.Message = fmt.Sprintf("%s: %s", o.Verb, status.Status().Message)
		if d := status.Status().Details; d != nil && len(d.Causes) > 0 {
			p.Field = strings.TrimPrefix(d.Causes[0].Field, ".")
		}
	}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(err):
		return p, false // the namespace or the object is being deleted, and the rest goes with it
	case apierrors.IsAlreadyExists(err) && o.Service() != nil:
		return p, false // mcs reports it
	case apierrors.IsAlreadyExists(err):
		p.Try = "rename or delete the existing object if it is not strait's"
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		p.Try = "remove this field from the manifest of the other writer"
	case apierrors.IsConflict(err):
		return p, false
	case strings.Contains(p.Message, "admission webhook"), strings.Contains(p.Message, "ValidatingAdmissionPolicy"):
		p.Try = "exempt strait's account from that policy, or change the exported Service"
	case apierrors.IsForbidden(err) && strings.Contains(p.Message, "exceeded quota"):
		p.Try = "raise the namespace's ResourceQuota, or delete what is not needed there"
	case apierrors.IsForbidden(err):
		p.Try = "allow strait's account to write it: see the ClusterRole in install/chart"
	case addressRefused(o, err):
		p.Try, p.Warning = "nothing to do: if it is refused again, the import gets another address", true
	case apierrors.IsInvalid(err) && blames(err, "spec.ipFamilies"):
		p.Try, p.Warning = "enable that IP family for Services in this cluster, or give the exported Services a family that it has", true
	case apierrors.IsInvalid(err):
		p.Try = "change the exported Services so that this cluster accepts the field"
	}
	return p, true
}

// unsettled is the Problem of an object that keeps changing after strait writes it.
func unsettled(o written.Op) clustermesh.Problem {
	return clustermesh.Problem{
		Code:    problem.WriteUndone,
		Object:  o.Target(),
		Message: "keeps changing after strait writes it: something else writes it too, perhaps an admission webhook",
		Try:     "find the other writer in metadata.managedFields, and stop it",
	}
}

// blames reports whether the API server named a field, or one below it, as the cause of an error.
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

// addressRefused reports whether the API server refused the addresses that a Service asks for.
func addressRefused(o written.Op, err error) bool {
	return o.Service() != nil && len(o.Service().Spec.ClusterIPs) > 0 && apierrors.IsInvalid(err) &&
		(blames(err, "spec.clusterIP") || blames(err, "spec.ipFamil"))
}
