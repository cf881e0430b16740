package policy

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"strait.io/strait/api/v1alpha1"
	"strait.io/strait/clustermesh"
)

// Ready is the type of the condition in a Status.
const Ready = v1alpha1.Ready

// Reasons of the condition Ready.
const (
	Invalid      = v1alpha1.Invalid
	Overridden   = v1alpha1.Overridden
	NotConcerned = v1alpha1.NotConcerned
	SomeSkipped  = v1alpha1.SomeSkipped
	InForce      = v1alpha1.InForce
)

const (
	// maxSkipped bounds Status.Skipped.
	maxSkipped = clustermesh.MaxSkipped
	// maxMessage is the limit of a condition's message.
	maxMessage = 32768
)

// Facts is what a cluster knows of a policy in its API server.
type Facts struct {
	Name       string
	Version    string // its resourceVersion
	Generation int64
	Spec       Spec
	Mistakes   field.ErrorList
	// Configured: the daemon's configuration has a policy of this name, which counts instead.
	Configured bool
	// Share is nil if the policy is not in force.
	Share *clustermesh.Share
	// Was is the status that the object has.
	Was Status
}

// Status returns the status that a cluster's copy of a policy should have; ok is false if too
// little is known. The time counts only if Ready changes.
func (f Facts) Status(own clustermesh.ClusterName, made clustermesh.PolicyResult, now time.Time) (s Status, ok bool) {
	s = Status{ObservedGeneration: f.Generation, Cluster: string(own)}
	ready := metav1.Condition{Type: Ready, Status: metav1.ConditionFalse, ObservedGeneration: f.Generation}
	switch {
	case len(f.Mistakes) > 0:
		ready.Reason, ready.Message = Invalid, Message(f.Mistakes)
	case f.Configured:
		ready.Reason, ready.Message = Overridden, "replication in the daemon's configuration has a policy of this name, which is used instead"
	case f.Share == nil:
		return Status{}, false
	default:
		count(&s, *f.Share, made)
		ready.Status = metav1.ConditionTrue
		ready.Reason, ready.Message = f.inForce(own, s)
	}
	ready.LastTransitionTime = Since(f.Was.Conditions, ready.Status, now)
	s.Conditions = []metav1.Condition{ready}
	return s, true
}

// inForce returns the reason and the message for a policy that is.
func (f Facts) inForce(own clustermesh.ClusterName, s Status) (reason, message string) {
	skipped := len(s.Skipped) + s.SkippedMore
	switch {
	case !Shares(f.Spec, own) && !Reaches(f.Spec, own):
		return NotConcerned, fmt.Sprintf("neither spec.from nor spec.to has this cluster, %s", own)
	case skipped == 1:
		return SomeSkipped, "1 Service is left out; status.skipped has the reason"
	case skipped > 1:
		return SomeSkipped, fmt.Sprintf("%d Services are left out; status.skipped has the reasons", skipped)
	}
	return InForce, ""
}

// count adds up what the cluster shares and gets. What it does not share comes first in Skipped.
func count(s *Status, share clustermesh.Share, made clustermesh.PolicyResult) {
	s.Selected, s.Shared, s.Joined, s.Mirrored, s.Imported = share.Selected, share.Shared, share.Joined, made.Mirrored, made.Imported
	for _, k := range share.Skipped {
		s.Skipped = append(s.Skipped, Skipped{Service: s.Cluster + "/" + k.Service.String(), Reason: k.Reason, Message: k.Message})
	}
	for _, k := range made.Skipped {
		s.Skipped = append(s.Skipped, Skipped{Service: k.Source, Reason: k.Reason, Message: k.Message})
	}
	s.SkippedMore = share.SkippedMore + made.SkippedMore
	if more := len(s.Skipped) - maxSkipped; more > 0 {
		s.Skipped, s.SkippedMore = s.Skipped[:maxSkipped], s.SkippedMore+more
	}
}

// Since returns the time from which Ready has a value, by the conditions that were written last.
func Since(was []metav1.Condition, ready metav1.ConditionStatus, now time.Time) metav1.Time {
	for _, c := range was {
		if c.Type == Ready && c.Status == ready {
			return c.LastTransitionTime
		}
	}
	return metav1.NewTime(now.Truncate(time.Second))
}

// Message returns all mistakes with the paths of their fields, as the message of a condition.
func Message(list field.ErrorList) string {
	var texts []string
	for _, m := range list {
		texts = append(texts, m.Error())
	}
	text := strings.Join(texts, "; ")
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}
