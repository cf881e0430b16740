package cluster

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// partOf is the label of everything that the chart renders.
const partOf = "app.kubernetes.io/part-of"

// Groups of APIs that not every server has: of the Prometheus operator, and of OpenShift.
const (
	monitoring = "monitoring.coreos.com"
	openShift  = "security.openshift.io"
)

// Change is what was done to one object.
type Change struct {
	// Did is "created", "changed", "unchanged", "kept" (left as it is; see Why) or "deleted".
	Did  string
	Kind string
	// Name is NAME or NAMESPACE/NAME.
	Name string
	// Why gives the reason, if one is needed.
	Why string
	// Pods is what becomes of a workload's pods; empty if nothing does.
	Pods PodChange
}

// PodChange is what becomes of the pods of a workload that changes.
type PodChange string

// The ways in which pods change.
const (
	PodsReplaced PodChange = "its pods are replaced"
	// PodsByHand: they go on as before until a person deletes them.
	PodsByHand PodChange = "its pods stay until they are deleted"
)

func change(did string, o *unstructured.Unstructured) Change {
	name := o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return Change{Did: did, Kind: o.GetKind(), Name: name}
}

// Apply applies the objects of the documents, in order, by server-side apply. With dryRun the
// server computes the result and changes nothing.
func (c *Cluster) Apply(ctx context.Context, docs [][]byte, dryRun bool) ([]Change, error) {
	var out []Change
	for _, d := range docs {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(d, &o.Object); err != nil {
			return out, fmt.Errorf("read object: %w", err)
		}
		done, err := c.apply(ctx, o, dryRun)
		if err != nil {
			return out, fmt.Errorf("context %s: apply %s %s: %w", c.Context, o.GetKind(), o.GetName(), err)
		}
		out = append(out, done)
	}
	return out, nil
}

func (c *Cluster) apply(ctx context.Context, o *unstructured.Unstructured, dryRun bool) (Change, error) {
	client, err := c.resource(o)
	if err != nil {
		return Change{}, err
	}
	have, err := client.Get(ctx, o.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		have = nil
	case err != nil:
		return Change{}, err
	case o.GetKind() == "CustomResourceDefinition" && have.GetLabels()[partOf] != Daemon:
		return c.applyForeign(ctx, client, have, o, dryRun)
	}
	if dryRun && have == nil {
		// Its namespace may not exist yet, so the server cannot be asked.
		return change("created", o), nil
	}
	options := metav1.ApplyOptions{FieldManager: Manager, Force: true}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	got, err := client.Apply(ctx, o.GetName(), o, options)
	switch {
	case err != nil:
		return Change{}, err
	case have == nil:
		return change("created", o), nil
	case same(have, got):
		return change("unchanged", o), nil
	}
	done := change("changed", o)
	done.Pods = podChange(have, got)
	return done, nil
}

// podChange compares two states of an object that can be a workload.
func podChange(have, got *unstructured.Unstructured) PodChange {
	template := func(o *unstructured.Unstructured) any {
		t, _, _ := unstructured.NestedMap(o.Object, "spec", "template")
		return t
	}
	if reflect.DeepEqual(template(have), template(got)) {
		return ""
	}
	if strategy, _, _ := unstructured.NestedString(got.Object, "spec", "updateStrategy", "type"); strategy == "OnDelete" {
		return PodsByHand
	}
	return PodsReplaced
}

// same compares two states of an object. It compares their content, because a dry run gives no new
// resource version.
func same(a, b *unstructured.Unstructured) bool {
	strip := func(o *unstructured.Unstructured) string {
		o = o.DeepCopy()
		o.SetManagedFields(nil)
		o.SetResourceVersion("")
		o.SetGeneration(0)
		delete(o.Object, "status")
		text, _ := o.MarshalJSON()
		return string(text)
	}
	return strip(a) == strip(b)
}

// installed are the kinds that the chart renders, except namespaces and CRDs, which can hold
// objects of others. They are in the order of their removal: workloads first, then what those need.
var installed = []schema.GroupVersionResource{
	resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings"),
	resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"),
	resource("policy", "v1", "poddisruptionbudgets"),
	networkPolicies,
	resource("apps", "v1", "deployments"),
	resource("apps", "v1", "daemonsets"),
	resource(monitoring, "v1", "podmonitors"),
	resource(monitoring, "v1", "prometheusrules"),
	resource("", "v1", "services"),
	resource("", "v1", "configmaps"),
	resource("rbac.authorization.k8s.io", "v1", "rolebindings"),
	resource("rbac.authorization.k8s.io", "v1", "roles"),
	resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
	resource("rbac.authorization.k8s.io", "v1", "clusterroles"),
	resource("", "v1", "serviceaccounts"),
	resource(openShift, "v1", "securitycontextconstraints"),
}

// Prune deletes objects that an earlier install created and that are no longer among the documents.
func (c *Cluster) Prune(ctx context.Context, docs [][]byte, dryRun bool) ([]Change, error) {
	keep := map[string]bool{}
	for _, d := range docs {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(d, &o.Object); err != nil {
			return nil, fmt.Errorf("read object: %w", err)
		}
		keep[o.GetKind()+"/"+o.GetName()] = true
	}
	return c.deleteListed(ctx, installed, partOf+"="+Daemon, dryRun, func(o *unstructured.Unstructured) bool {
		ours := o.GetNamespace() == "" || o.GetNamespace() == c.Namespace
		return ours && !keep[o.GetKind()+"/"+o.GetName()]
	})
}

// deleteListed deletes the objects of some kinds that match the selector and for which meant is
// true. A kind that the server does not serve has no objects.
func (c *Cluster) deleteListed(ctx context.Context, kinds []schema.GroupVersionResource, selector string, dryRun bool,
	meant func(*unstructured.Unstructured) bool) ([]Change, error) {
	var out []Change
	foreground := metav1.DeletePropagationForeground
	options := metav1.DeleteOptions{PropagationPolicy: &foreground}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	for _, kind := range kinds {
		list, err := c.objects.Resource(kind).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if apierrors.IsNotFound(err) || (kind.Group == monitoring || kind.Group == openShift) && apierrors.IsForbidden(err) {
			continue // an account that may not list these objects has made none
		}
		if err != nil {
			return out, fmt.Errorf("context %s: list %s: %w", c.Context, kind.Resource, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if !meant(o) {
				continue
			}
			err := c.objects.Resource(kind).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), options)
			if err != nil && !apierrors.IsNotFound(err) {
				return out, fmt.Errorf("context %s: delete %s %s: %w", c.Context, o.GetKind(), o.GetName(), err)
			}
			out = append(out, change("deleted", o))
		}
	}
	return out, nil
}

// annotate sets an annotation of a workload's pods, which restarts them if the value is new. It
// uses a field manager of its own, so that an upgrade, which does not know the value, leaves it in
// place. An empty value removes the annotation.
func (c *Cluster) annotate(ctx context.Context, plural, kind, namespace, name, annotation, value string) error {
	spec := map[string]any{}
	if value != "" {
		spec = map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: value}}}}
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace}, "spec": spec,
	}}
	text, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	manager := strings.ReplaceAll(annotation, "/", "-")
	force := true
	_, err = c.objects.Resource(resource("apps", "v1", plural)).Namespace(namespace).Patch(ctx, name, types.ApplyPatchType, text,
		metav1.PatchOptions{FieldManager: manager, Force: &force})
	if err != nil {
		return fmt.Errorf("context %s: roll %s %s/%s: %w", c.Context, kind, namespace, name, err)
	}
	return nil
}
