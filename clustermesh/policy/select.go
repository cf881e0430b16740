package policy

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"strait.io/strait/clustermesh"
)

// mirrored are labels of Services that another system has mirrored from another cluster, or made
// for a ServiceImport, as Cilium and the controller of AWS Cloud Map do.
var mirrored = []string{
	"mirror.linkerd.io/mirrored-service", "liqo.io/remote-cluster-id", "lighthouse.submariner.io/sourceCluster",
	"multicluster.kubernetes.io/service-name", "multicluster.kubernetes.io/source-cluster",
}

// neverCopied are prefixes of the keys of labels and annotations; see Copied.
var neverCopied = []string{
	"kubectl.kubernetes.io/", "strait.io/", "service.strait.io/", "service.cilium.io/", "io.cilium/", "mirror.linkerd.io/",
	"multicluster.kubernetes.io/", // of imports and derived Services
	// By these, tools that deploy know what is theirs. Some delete what has the label and is not in
	// their source.
	"argocd.argoproj.io/", "kapp.k14s.io/", "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "objectset.rio.cattle.io/", "fleet.cattle.io/",
	"applyset.kubernetes.io/", "addonmanager.kubernetes.io/",
}

// OfImport reports whether an object has the owners of a Service that another implementation of the
// MCS API has derived: a ServiceImport is among them.
func OfImport(owners []metav1.OwnerReference) bool {
	return slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.Kind == "ServiceImport" })
}

// Mirrored reports whether labels are those of a Service that another system has made of another
// cluster's. Such a Service is no source, because two systems would mirror each other's mirrors;
// and its annotations are for that system, which has copied them or written its own.
func Mirrored(labels map[string]string) bool {
	return slices.ContainsFunc(mirrored, func(key string) bool { _, has := labels[key]; return has })
}

// Shares reports whether a policy is about the Services of a cluster.
func Shares(s Spec, from clustermesh.ClusterName) bool { return names(s.From, string(from)) }

// Reaches reports whether a policy is about what a cluster gets.
func Reaches(s Spec, to clustermesh.ClusterName) bool { return names(s.To, string(to)) }

// names reports whether a list of clusters has one.
func names(list []string, cluster string) bool {
	return slices.Contains(list, all) || slices.Contains(list, cluster)
}

// Clusters returns the ids of a list, nil if it stands for all clusters.
func Clusters(list []string) (out []clustermesh.ClusterName) {
	if slices.Contains(list, all) {
		return nil
	}
	for _, id := range list {
		out = append(out, clustermesh.ClusterName(id))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Selector decides which Services a policy selects.
type Selector []selectorTerm

type selectorTerm struct {
	namespaces []string
	names      []*regexp.Regexp
	labels     labels.Selector
}

// SelectorOf returns the selector of a valid policy, without its label selectors if byLabels is
// false. A term that is not valid selects nothing.
func SelectorOf(s Spec, byLabels bool) (out Selector) {
	for _, t := range s.Select {
		if !byLabels {
			t.Labels = nil
		}
		if term, ok := compile(t); ok {
			out = append(out, term)
		}
	}
	return out
}

func compile(t Term) (out selectorTerm, ok bool) {
	out.namespaces, out.labels = t.Namespaces, labels.Everything()
	for _, name := range t.Names {
		whole, err := regexp.Compile("^(?:" + name + ")$")
		if err != nil {
			return out, false
		}
		out.names = append(out.names, whole)
	}
	if t.Labels != nil {
		selector, err := metav1.LabelSelectorAsSelector(t.Labels)
		if err != nil {
			return out, false
		}
		out.labels = selector
	}
	return out, true
}

// Selects reports whether a term fits a Service.
func (s Selector) Selects(namespace, name string, of map[string]string) bool {
	return slices.ContainsFunc(s, func(t selectorTerm) bool {
		return (len(t.namespaces) == 0 || slices.Contains(t.namespaces, namespace)) &&
			(len(t.names) == 0 || slices.ContainsFunc(t.names, func(re *regexp.Regexp) bool { return re.MatchString(name) })) &&
			t.labels.Matches(labels.Set(of))
	})
}

// Copied returns the entries of labels or annotations to copy: those that a pattern fits, or
// without patterns those that isDefault accepts. What belongs to kubectl, to strait or to another
// system that shares Services is never copied: Linkerd would mirror a mirror that has its label,
// and a mirror that is marked as global would be joined with its source.
func Copied(from map[string]string, patterns []string, isDefault func(key string) bool) map[string]string {
	out := map[string]string{}
	for k, v := range from {
		fits := len(patterns) == 0 && isDefault(k)
		for _, p := range patterns {
			if ok, _ := path.Match(p, k); ok {
				fits = true
			}
		}
		if fits && Copyable(k) {
			out[k] = v
		}
	}
	return out
}

// CopiedAnnotations returns the annotations to copy: those that a pattern fits. An annotation that
// a controller acts on has to be named, without a wildcard: otherwise, a user who writes a Service in
// one cluster would make DNS records and load balancers in another.
func CopiedAnnotations(from map[string]string, patterns []string) map[string]string {
	out := Copied(from, patterns, func(string) bool { return false })
	maps.DeleteFunc(out, func(key, _ string) bool { return actedOn(key) && !slices.Contains(patterns, key) })
	return out
}

// actedOn reports whether a key is in a domain whose annotations controllers of Services act on.
func actedOn(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return !Portable(key) || slices.Contains([]string{"metallb.io", "metallb.universe.tf"}, domain)
}

// Copyable reports whether a pattern of a policy can choose a label or annotation by its key.
func Copyable(key string) bool {
	return !slices.ContainsFunc(neverCopied, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// Portable reports whether the key of a label has no domain of Kubernetes. Such labels are copied
// by default.
func Portable(key string) bool {
	domain, _, has := strings.Cut(key, "/")
	return !has || !strings.HasSuffix(domain, "kubernetes.io") && !strings.HasSuffix(domain, "k8s.io")
}
