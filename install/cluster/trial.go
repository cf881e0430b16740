package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"strait.io/strait/daemon/api/client"
)

// Trial is a namespace of a cluster in which strait connectivity test and strait check make pods.
type Trial struct {
	*Cluster
	// Name is that of the namespace, and Label one that only a namespace of this kind has, with "true".
	Name, Label string
	// Elsewhere is what to do about another namespace of that name.
	Elsewhere string
}

// TrialPod is a pod of a test.
type TrialPod struct {
	Name, Node, Role string
	Addresses        []netip.Addr
}

// Image is what the daemon's pods run, and the Secrets that it is pulled with.
func (c *Cluster) Image(ctx context.Context) (image string, pullSecrets []string, err error) {
	ds, err := get[appsv1.DaemonSet](ctx, c, daemonSets, c.Namespace, Daemon)
	if apierrors.IsNotFound(err) {
		return "", nil, fmt.Errorf("context %s: strait is not installed in namespace %s; install it: strait install --context %s --cluster NAME", c.Context, c.Namespace, c.Context)
	}
	if err != nil {
		return "", nil, fmt.Errorf("context %s: read DaemonSet %s: %w", c.Context, Daemon, err)
	}
	for _, s := range ds.Spec.Template.Spec.ImagePullSecrets {
		pullSecrets = append(pullSecrets, s.Name)
	}
	for _, x := range ds.Spec.Template.Spec.Containers {
		if x.Name == container {
			return x.Image, pullSecrets, nil
		}
	}
	return "", nil, fmt.Errorf("context %s: DaemonSet %s/%s has no container %s; install strait again: strait upgrade --context %s", c.Context, c.Namespace, Daemon, container, c.Context)
}

// DaemonNodes returns the names of the nodes with a ready daemon, those first on which every pod may run.
func (c *Cluster) DaemonNodes(ctx context.Context) (out []string, err error) {
	found, err := list[corev1.Pod](ctx, c, pods, c.Namespace, daemonPods)
	if err != nil {
		return nil, fmt.Errorf("context %s: list the daemon's pods: %w", c.Context, err)
	}
	machines, err := list[corev1.Node](ctx, c, nodes, "", "")
	if err != nil {
		return nil, fmt.Errorf("context %s: list nodes: %w", c.Context, err)
	}
	var last []string
	for _, n := range machines {
		runs := slices.ContainsFunc(found, func(p corev1.Pod) bool { return p.Spec.NodeName == n.Name && notReady(&p) == "" })
		switch {
		case !runs:
		case n.Spec.Unschedulable || len(n.Spec.Taints) > 0:
			last = append(last, n.Name)
		default:
			out = append(out, n.Name)
		}
	}
	slices.Sort(out)
	slices.Sort(last)
	if out = append(out, last...); len(out) == 0 {
		return nil, fmt.Errorf("context %s: no daemon of strait is ready in namespace %s; see why: kubectl --context %s -n %s get pods -o wide", c.Context, c.Namespace, c.Context, c.Namespace)
	}
	return out, nil
}

// mcs is the group of ServiceExports and ServiceImports.
const mcs = "multicluster.x-k8s.io"

// ServedExport returns the apiVersion in which the cluster serves ServiceExports.
func (c *Cluster) ServedExport(ctx context.Context) (string, error) {
	m, err := c.kinds.RESTMapping(schema.GroupKind{Group: mcs, Kind: "ServiceExport"})
	if err != nil {
		return "", fmt.Errorf("context %s: find the kind ServiceExport: %w; install it: strait upgrade --context %s", c.Context, err, c.Context)
	}
	return m.GroupVersionKind.GroupVersion().String(), nil
}

// ErrForeign means that the namespace was made by another program.
var ErrForeign = errors.New("strait did not make it")

// Clear deletes what an earlier test left, and waits until it is gone. It reports whether there was
// anything. The error is ErrForeign if the namespace is another one.
func (t Trial) Clear(ctx context.Context) (bool, error) {
	ns, err := get[corev1.Namespace](ctx, t.Cluster, namespaces, "", t.Name)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("context %s: read Namespace %s: %w", t.Context, t.Name, err)
	case ns.Labels[t.Label] != "true":
		return false, fmt.Errorf("context %s: Namespace %s: %w; %s", t.Context, t.Name, ErrForeign, t.Elsewhere)
	}
	// Only this very namespace: another one may be made in the meantime.
	err = t.objects.Resource(namespaces).Delete(ctx, t.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &ns.UID}})
	if ignoreNotFound(err) != nil {
		return true, fmt.Errorf("context %s: delete Namespace %s: %w; %s", t.Context, t.Name, err, t.byHand())
	}
	err = poll(ctx, waitEvery/2, func() (bool, error) {
		have, err := get[corev1.Namespace](ctx, t.Cluster, namespaces, "", t.Name)
		return apierrors.IsNotFound(err) || err == nil && have.UID != ns.UID, ignoreNotFound(err)
	})
	if err != nil {
		return true, fmt.Errorf("context %s: wait until Namespace %s is deleted: %w; %s", t.Context, t.Name, err, t.byHand())
	}
	return true, nil
}

// byHand is how people remove the namespace.
func (t Trial) byHand() string {
	return fmt.Sprintf("remove it: kubectl --context %s delete namespace %s", t.Context, t.Name)
}

// ErrRefused means that a cluster does not allow an object, by its policies or by the rights of the user.
var ErrRefused = errors.New("the cluster does not allow it")

// Make creates objects.
func (t Trial) Make(ctx context.Context, docs [][]byte) error {
	_, err := t.Apply(ctx, docs, false)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// WaitPods waits until as many pods of a role are ready, and calls report with what is missing each
// time that it looks.
func (t Trial) WaitPods(ctx context.Context, role string, count int, report func(string)) (out []TrialPod, err error) {
	selector, last := t.Label+"=true,role="+role, ""
	err = poll(ctx, waitEvery/2, func() (bool, error) {
		found, err := list[corev1.Pod](ctx, t.Cluster, pods, t.Name, selector)
		if err != nil {
			return false, err
		}
		out = nil
		for _, p := range found {
			if notReady(&p) == "" {
				out = append(out, trialPod(&p))
			}
		}
		if len(out) >= count {
			return true, nil
		}
		now := fmt.Sprintf("%d of %d pods are ready", len(out), count)
		if why := t.whyNotIn(ctx, t.Name, selector); why != "" {
			now += ": " + why
		}
		last = now
		report(now)
		return false, nil
	})
	if err != nil {
		err = fmt.Errorf("context %s: wait for the pods in Namespace %s: %s: %w", t.Context, t.Name, last, err)
	}
	return out, err
}

func trialPod(p *corev1.Pod) TrialPod {
	out := TrialPod{Name: p.Name, Node: p.Spec.NodeName, Role: p.Labels["role"]}
	for _, ip := range p.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			out.Addresses = append(out.Addresses, a)
		}
	}
	return out
}

// Import returns the addresses of a ServiceImport; found is false if there is none, or if it waits
// for its addresses. A headless one has none.
func (t Trial) Import(ctx context.Context, name string) (ips []netip.Addr, found bool, err error) {
	o, err := t.mcsObject(ctx, "ServiceImport", name)
	if err != nil || o == nil {
		return nil, false, err
	}
	texts, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "ips")
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil {
			ips = append(ips, a)
		}
	}
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "type")
	return ips, kind == "Headless" || len(ips) > 0, nil
}

// ExportTrouble returns what the conditions of a ServiceExport have against it; "" if nothing.
func (t Trial) ExportTrouble(ctx context.Context, name string) (string, error) {
	o, err := t.mcsObject(ctx, "ServiceExport", name)
	if err != nil || o == nil {
		return "", err
	}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var out []string
	for _, x := range list {
		c, _ := x.(map[string]any)
		bad := map[any]any{"Valid": "False", "Ready": "False", "Conflict": "True"}[c["type"]]
		if bad != nil && c["status"] == bad {
			out = append(out, fmt.Sprintf("%v is %v: %v", c["type"], c["status"], c["message"]))
		}
	}
	if len(list) == 0 {
		return "no leader of the cluster has looked at it yet", nil
	}
	return strings.Join(out, "; "), nil
}

// mcsObject reads an object of the MCS API; nil if it does not exist.
func (t Trial) mcsObject(ctx context.Context, kind, name string) (*unstructured.Unstructured, error) {
	m, err := t.kinds.RESTMapping(schema.GroupKind{Group: mcs, Kind: kind})
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("context %s: find kind %s: %w", t.Context, kind, err)
	}
	o, err := t.objects.Resource(m.Resource).Namespace(t.Name).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("context %s: read %s %s/%s: %w", t.Context, kind, t.Name, name, err)
	}
	return o, nil
}

var networkPolicies = resource("networking.k8s.io", "v1", "networkpolicies")

// Policies returns the names of the NetworkPolicies in the namespace.
func (t Trial) Policies(ctx context.Context) (out []string, err error) {
	found, err := t.objects.Resource(networkPolicies).Namespace(t.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("context %s: list NetworkPolicies of %s: %w", t.Context, t.Name, err)
	}
	for _, o := range found.Items {
		out = append(out, o.GetName())
	}
	return out, nil
}

// Run runs a command in a pod of the test, within a time.
func (t Trial) Run(ctx context.Context, pod, in string, limit time.Duration, stdin io.Reader, command ...string) (client.Output, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := t.exec(ctx, place{t.Name, pod, in}, stdin, command...)
	if err != nil {
		return out, fmt.Errorf("context %s: run %s in pod %s/%s: %w", t.Context, command[0], t.Name, pod, err)
	}
	return out, nil
}
