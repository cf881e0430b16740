package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
)

// mirrored are labels of Services that another system has mirrored from another cluster. They are no
// sources: two systems would mirror each other's mirrors.
var mirrored = []string{"mirror.linkerd.io/mirrored-service", "liqo.io/remote-cluster-id", "lighthouse.submariner.io/sourceCluster"}

// neverCopied are prefixes of the keys of labels and annotations; see keys.
var neverCopied = []string{"kubectl.kubernetes.io/", "strait.io/", "mirror.linkerd.io/"}

// Reasons why a Service that a policy selects is left out.
const (
	Barred           = "Barred"
	ExternalName     = "ExternalName"
	InvalidName      = "InvalidName"
	NamespaceMissing = "NamespaceMissing"
	TargetExists     = "TargetExists"
	Conflict         = "Conflict"
	NotSupported     = "NotSupported"
)

// names reports whether a list of clusters has one.
func names(list []string, cluster string) bool {
	return slices.Contains(list, all) || slices.Contains(list, cluster)
}

// selects reports whether a term fits a Service.
func (s Spec) selects(svc *corev1.Service) bool {
	return slices.ContainsFunc(s.Select, func(t Term) bool { return t.fits(svc) })
}

func (t Term) fits(svc *corev1.Service) bool {
	if len(t.Namespaces) > 0 && !slices.Contains(t.Namespaces, svc.Namespace) {
		return false
	}
	if len(t.Names) > 0 && !slices.ContainsFunc(t.Names, func(re string) bool {
		whole, err := regexp.Compile("^(?:" + re + ")$")
		return err == nil && whole.MatchString(svc.Name)
	}) {
		return false
	}
	if t.Labels == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(t.Labels)
	return err == nil && selector.Matches(labels.Set(svc.Labels))
}

// source reports whether a Service can be one: it is the cluster's own, and no machinery.
func source(svc *corev1.Service) bool {
	if svc.Labels[object.LabelManagedBy] == object.ManagedBy || svc.DeletionTimestamp != nil {
		return false
	}
	for _, key := range mirrored {
		if _, has := svc.Labels[key]; has {
			return false
		}
	}
	return true
}

// refused says why a selected Service cannot be a source; empty if it can.
func refused(svc *corev1.Service) (reason, message string) {
	if why := (clustermesh.Barred{}).Why(clustermesh.ServiceName{Namespace: svc.Namespace, Name: svc.Name}); why != "" {
		return Barred, why
	}
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		return ExternalName, "its type is ExternalName, so it has no endpoints"
	}
	return "", ""
}

// keys returns the entries to copy: those that a pattern fits, or without patterns those that isDefault
// accepts. What belongs to kubectl, to strait or to another system that mirrors is never copied: Linkerd
// would mirror a mirror that has its label.
func keys(from map[string]string, patterns []string, isDefault func(key string) bool) map[string]string {
	out := map[string]string{}
	for k, v := range from {
		fits := len(patterns) == 0 && isDefault(k)
		for _, p := range patterns {
			if ok, _ := path.Match(p, k); ok {
				fits = true
			}
		}
		foreign := slices.ContainsFunc(neverCopied, func(prefix string) bool { return strings.HasPrefix(k, prefix) })
		if fits && !foreign && k != object.LabelManagedBy {
			out[k] = v
		}
	}
	return out
}

// kubernetes reports whether the key of a label has a domain of Kubernetes.
func kubernetes(key string) bool {
	domain, _, has := strings.Cut(key, "/")
	return has && (strings.HasSuffix(domain, "kubernetes.io") || strings.HasSuffix(domain, "k8s.io"))
}
