package gke

import (
	"fmt"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/written"
)

// Ready is the type of the condition in a status.
const Ready = "Ready"

// Reasons of the condition Ready. It is false for the first three.
const (
	// Invalid: the object has mistakes, and nothing is done by it.
	Invalid = "Invalid"
	// NoBackends: the cluster's ClusterSetIPs are not those of Services.
	NoBackends = "NoBackends"
	// Failed: the API server refuses a write, or another object has the name.
	Failed = "Failed"
	// NotListed: the pods of this cluster do not answer.
	NotListed = "NotListed"
	InForce   = "InForce"
)

// Status is a status to write.
type Status struct {
	object.GKEObject
	Row    string // the kind's name in package written
	Status object.GKEStatus
}

// Statuses returns the statuses that differ from what the objects have. Failed says why a write of
// an object failed, by Op.Target. The time counts only if Ready changes.
func Statuses(v View, h Have, failed map[string]string, now time.Time) (out []Status) {
	say := func(row string, g object.GKEObject, c metav1.Condition, vip string) {
		c.Type, c.ObservedGeneration, c.LastTransitionTime = Ready, g.Generation, policy.Since(g.Was.Conditions, c.Status, now)
		s := object.GKEStatus{VIP: vip, Conditions: []metav1.Condition{c}}
		if s.VIP != g.Was.VIP || !slices.Equal(s.Conditions, g.Was.Conditions) {
			out = append(out, Status{g, row, s})
		}
	}
	for _, s := range v.Services {
		if s.From == "" { // else its own cluster says it
			say(written.MultiService, s.GKEObject, v.ofService(s, failed), "")
		}
	}
	for _, i := range v.Ingresses {
		if i.From != "" {
			continue
		}
		say(written.MultiIngress, i.GKEObject, v.ofIngress(i, failed), vip(h.Ingresses, clustermesh.ServiceName(i.ID)))
	}
	return out
}

func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Status: status, Reason: reason, Message: message}
}

func (v View) ofService(s object.MultiService, failed map[string]string) metav1.Condition {
	target := object.Name("Service", s.Namespace, s.Derived())
	switch {
	case len(s.Mistakes) > 0:
		return condition(metav1.ConditionFalse, Invalid, policy.Message(s.Mistakes))
	case failed[target] != "":
		return condition(metav1.ConditionFalse, Failed, failed[target])
	}
	reason, message := InForce, target+" selects pods of this cluster, "+string(v.Cluster)
	if !s.Lists(v.Cluster) {
		reason, message = NotListed, fmt.Sprintf("spec.clusters does not list this cluster, %s", v.Cluster)
	}
	if there := v.Elsewhere[string(v.Cluster)+"/"+s.Title()]; len(there) > 0 {
		message += "; by this object, the same Service selects pods of " + strings.Join(there, ", ")
	}
	return condition(metav1.ConditionTrue, reason, message)
}

func (v View) ofIngress(i object.MultiIngress, failed map[string]string) metav1.Condition {
	target := object.Name("Ingress", i.Namespace, i.Name)
	switch {
	case len(i.Mistakes) > 0:
		return condition(metav1.ConditionFalse, Invalid, policy.Message(i.Mistakes))
	case v.noBackends():
		return condition(metav1.ConditionFalse, NoBackends, "clusterSetIPs of the daemon's configuration is cidr, so there is no Service that an Ingress can lead to")
	case failed[target] != "":
		return condition(metav1.ConditionFalse, Failed, failed[target])
	}
	return condition(metav1.ConditionTrue, InForce, target+" has the same rules")
}

// vip returns the first address of an Ingress.
func vip(ingresses []*networkingv1.Ingress, name clustermesh.ServiceName) string {
	for _, i := range ingresses {
		if nameOf(i) != name {
			continue
		}
		for _, a := range i.Status.LoadBalancer.Ingress {
			if a.IP != "" {
				return a.IP
			}
			if a.Hostname != "" {
				return a.Hostname
			}
		}
	}
	return ""
}
