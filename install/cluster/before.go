package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

var accessReviews = resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews")

// MayNotCreate returns which of these objects the user may not create, sorted: "RESOURCE.GROUP in
// namespace NAMESPACE".
// Kinds that the API server does not know are left out: strait brings them.
func (c *Cluster) MayNotCreate(ctx context.Context, docs [][]byte) ([]string, error) {
	asked := map[string]bool{} // whether it is allowed
	for _, d := range docs {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal(d, &o.Object); err != nil {
			return nil, fmt.Errorf("read an object of the chart: %w", err)
		}
		kind := o.GroupVersionKind()
		m, err := c.kinds.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("context %s: find kind %s at the API server: %w", c.Context, kind.Kind, err)
		}
		attributes := authorizationv1.ResourceAttributes{Verb: "create", Group: m.Resource.Group, Version: m.Resource.Version, Resource: m.Resource.Resource}
		what := m.Resource.GroupResource().String()
		if m.Scope.Name() == meta.RESTScopeNameNamespace {
			attributes.Namespace = o.GetNamespace()
			what += " in namespace " + attributes.Namespace
		}
		if _, is := asked[what]; is {
			continue
		}
		if asked[what], err = c.may(ctx, attributes); err != nil {
			return nil, err
		}
	}
	maps.DeleteFunc(asked, func(_ string, may bool) bool { return may })
	return slices.Sorted(maps.Keys(asked)), nil
}

// may reports whether the user may do something.
func (c *Cluster) may(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&review)
	if err != nil {
		return false, err
	}
	answer, err := c.objects.Resource(accessReviews).Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("context %s: ask what this account may do: %w", c.Context, err)
	}
	allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed, nil
}

// PodCIDRs returns the ranges that the Nodes have for their pods.
func (c *Cluster) PodCIDRs(ctx context.Context) (out []netip.Prefix, err error) {
	machines, err := list[corev1.Node](ctx, c, nodes, "", "")
	if err != nil {
		return nil, fmt.Errorf("context %s: list nodes: %w", c.Context, err)
	}
	for _, n := range machines {
		for _, text := range n.Spec.PodCIDRs {
			if p, err := netip.ParsePrefix(text); err == nil {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// Installed reports whether strait's DaemonSet is there.
func (c *Cluster) Installed(ctx context.Context) (bool, error) {
	_, err := get[appsv1.DaemonSet](ctx, c, daemonSets, c.Namespace, Daemon)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("context %s: read DaemonSet %s/%s: %w", c.Context, c.Namespace, Daemon, err)
	}
	return true, nil
}

// ServedExports returns the versions in which the cluster serves ServiceExports; nil if it does not.
func (c *Cluster) ServedExports() (out []string, err error) {
	all, err := c.kinds.RESTMappings(schema.GroupKind{Group: mcs, Kind: "ServiceExport"})
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("context %s: find kind ServiceExport at the API server: %w", c.Context, err)
	}
	for _, m := range all {
		out = append(out, m.Resource.Version)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// WaitEach waits until the pods of a DaemonSet run on all of its nodes, but for no longer than patience. It
// returns those that run, and for the nodes of the others why they do not.
func (t Trial) WaitEach(ctx context.Context, daemonSet string, patience time.Duration) (ready []TrialPod, missing map[string]string, err error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = poll(waiting, waitEvery/2, func() (bool, error) {
		ds, err := get[appsv1.DaemonSet](waiting, t.Cluster, daemonSets, t.Name, daemonSet)
		if err != nil {
			return false, err
		}
		found, err := list[corev1.Pod](waiting, t.Cluster, pods, t.Name, t.Label+"=true")
		if err != nil {
			return false, err
		}
		ready, missing = nil, map[string]string{}
		for _, p := range found {
			if why := notReady(&p); why != "" {
				missing[nodeOf(&p)] = why
			} else {
				ready = append(ready, trialPod(&p))
			}
		}
		known := ds.Status.ObservedGeneration == ds.Generation
		return known && len(missing) == 0 && len(ready) == int(ds.Status.DesiredNumberScheduled), nil
	})
	if err != nil && (waiting.Err() == nil || ctx.Err() != nil) {
		return nil, nil, fmt.Errorf("context %s: wait for the pods in Namespace %s: %w", t.Context, t.Name, err)
	}
	slices.SortFunc(ready, func(a, b TrialPod) int { return cmp.Compare(a.Node, b.Node) })
	return ready, missing, nil
}

// nodeOf returns the node of a pod of a DaemonSet, which names it before the pod is scheduled.
func nodeOf(p *corev1.Pod) string {
	if p.Spec.NodeName != "" || p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil || p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return p.Spec.NodeName
	}
	for _, term := range p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range term.MatchFields {
			if f.Key == metav1.ObjectNameField && len(f.Values) == 1 {
				return f.Values[0]
			}
		}
	}
	return p.Name
}
