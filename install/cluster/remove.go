package cluster

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"strait.io/strait/clustermesh/written"
)

// Cleanup is the DaemonSet that removes strait's traces from the nodes.
const Cleanup = "strait-cleanup"

// Bound gives a context the deadline of a wait.
type Bound func(context.Context) (context.Context, context.CancelFunc)

// StartCleanup replaces the daemon's DaemonSet by one that removes strait's traces from every node,
// with the daemon's own mounts and privileges. It reports false if there is no daemon to replace.
// If the pods of nodes that do not answer do not end in time, that is an error, or with force their
// objects are deleted.
func (c *Cluster) StartCleanup(ctx context.Context, bound Bound, force bool) (started bool, err error) {
	sets := c.objects.Resource(daemonSets).Namespace(c.Namespace)
	daemon, err := get[appsv1.DaemonSet](ctx, c, daemonSets, c.Namespace, Daemon)
	if apierrors.IsNotFound(err) {
		// An uninstall that was interrupted may have left the cleanup.
		_, err := sets.Get(ctx, Cleanup, metav1.GetOptions{})
		return err == nil, ignoreNotFound(err)
	}
	if err != nil {
		return false, fmt.Errorf("context %s: read DaemonSet %s: %w", c.Context, Daemon, err)
	}
	clean := cleanupOf(daemon)
	foreground := metav1.DeletePropagationForeground
	for _, x := range []struct {
		kind schema.GroupVersionResource
		name string
	}{{deployments, View}, {deployments, Leader}, {daemonSets, Daemon}, {daemonSets, Tunnel}} {
		err := c.objects.Resource(x.kind).Namespace(c.Namespace).Delete(ctx, x.name, metav1.DeleteOptions{PropagationPolicy: &foreground})
		if ignoreNotFound(err) != nil {
			return false, fmt.Errorf("context %s: delete %s %s: %w", c.Context, x.kind.Resource, x.name, err)
		}
	}
	wait, cancel := bound(ctx)
	defer cancel()
	if err := c.waitGone(wait, servingPods); err != nil && !force {
		return false, err
	} else if err != nil {
		if err := c.dropPods(ctx, servingPods); err != nil {
			return false, err
		}
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(clean)
	if err != nil {
		return false, err
	}
	if _, err := sets.Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{FieldManager: Manager}); err != nil && !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("context %s: create DaemonSet %s: %w", c.Context, Cleanup, err)
	}
	return true, nil
}

// servingPods selects the pods of the daemon, of the tunnel, of strait-leader and of strait-view.
const servingPods = "app.kubernetes.io/name=strait,app.kubernetes.io/component in (daemon,tunnel,leader,view)"

// dropPods deletes the objects of pods that do not end by themselves, such as those on a node that
// does not answer.
func (c *Cluster) dropPods(ctx context.Context, selector string) error {
	left, err := list[corev1.Pod](ctx, c, pods, c.Namespace, selector)
	if err != nil {
		return fmt.Errorf("context %s: list the pods %s: %w", c.Context, selector, err)
	}
	var errs []error
	for _, p := range left {
		err := c.objects.Resource(pods).Namespace(c.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		errs = append(errs, ignoreNotFound(err))
	}
	return errors.Join(errs...)
}

// cleanupOf builds the cleanup DaemonSet from the daemon's: the same pod with another command, and
// without what only a running daemon needs.
func cleanupOf(daemon *appsv1.DaemonSet) *appsv1.DaemonSet {
	labels := map[string]string{"app.kubernetes.io/name": "strait", "app.kubernetes.io/component": "cleanup", partOf: Daemon}
	pod := daemon.Spec.Template.Spec.DeepCopy()
	pod.AutomountServiceAccountToken = new(bool)
	work := pod.Containers[0]
	work.Name, work.Env, work.Ports = "cleanup", nil, nil
	work.StartupProbe, work.LivenessProbe, work.ReadinessProbe = nil, nil, nil
	work.Command = []string{"/straitd", "cleanup", "--config=/etc/strait/strait.yaml", "--state"}
	for _, v := range pod.Volumes {
		if v.Projected != nil { // the configuration is needed; keys, pins and the token are not
			v.Projected.Sources = slices.DeleteFunc(v.Projected.Sources, func(p corev1.VolumeProjection) bool {
				return p.ConfigMap == nil || p.ConfigMap.Name != configName
			})
		}
	}
	// The parents of the state directories are mounted, so that the directories themselves can be
	// removed.
	for _, name := range []string{"state", "run"} {
		for i := range pod.Volumes {
			if v := &pod.Volumes[i]; v.Name == name && v.HostPath != nil {
				v.HostPath.Path = path.Dir(v.HostPath.Path)
			}
		}
		for i := range work.VolumeMounts {
			if m := &work.VolumeMounts[i]; m.Name == name {
				m.MountPath = path.Dir(m.MountPath)
			}
		}
	}
	hold := *work.DeepCopy()
	hold.Name, hold.Command = "done", []string{"/straitd", "cleanup", "--hold"}
	hold.VolumeMounts = nil
	hold.SecurityContext.Capabilities.Add = nil
	pod.InitContainers, pod.Containers = []corev1.Container{work}, []corev1.Container{hold}
	pod.TerminationGracePeriodSeconds = new(int64)
	return &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Name: Cleanup, Namespace: daemon.Namespace, Labels: labels},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: *pod},
		},
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

var crds = resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")

// policyLag is how long the API server may keep applying an admission policy that was deleted.
const policyLag = 15 * time.Second

// RemoveWritten undoes what the leader wrote, as package written lists it: it deletes strait's own
// objects, and removes the fields that the leader wrote into objects of others.
func (c *Cluster) RemoveWritten(ctx context.Context) ([]Change, error) {
	// First the policies, one of which lets only strait change these. The API server notices a
	// moment later.
	out, err := c.deleteListed(ctx, installed[:2], partOf+"="+Daemon, false, everything)
	if err != nil {
		return out, err
	}
	patience := time.Duration(0)
	if len(out) > 0 {
		patience = policyLag
	}
	var errs []error
	for _, row := range written.Rows {
		kind := c.servedResource(row)
		switch row.End {
		case written.Deleted:
			changes, err := c.deletePatiently(ctx, kind, row.Labels, patience)
			out, errs = append(out, changes...), append(errs, err)
		case written.Released:
			changes, err := c.release(ctx, kind, row.GroupVersionKind().Kind)
			out, errs = append(out, changes...), append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

func everything(*unstructured.Unstructured) bool { return true }

// deletePatiently deletes what a selector matches. For so long, it tries again what is refused.
func (c *Cluster) deletePatiently(ctx context.Context, kind schema.GroupVersionResource, selector string, patience time.Duration) (out []Change, err error) {
	deadline := time.Now().Add(patience)
	err = poll(ctx, waitEvery, func() (bool, error) {
		changes, err := c.deleteListed(ctx, []schema.GroupVersionResource{kind}, selector, false, everything)
		out = append(out, changes...)
		refused := apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
		if refused && time.Now().Before(deadline) {
			return false, nil
		}
		return true, err
	})
	return out, err
}

// servedResource returns a row's kind in a version that is served. If none is, there are no objects,
// and the row's version is as good as another.
func (c *Cluster) servedResource(row written.Row) schema.GroupVersionResource {
	m, err := c.kinds.RESTMapping(row.GroupVersionKind().GroupKind())
	if err != nil {
		return row.Resource
	}
	return m.Resource
}

// release removes the fields that the leader owns in objects of others, such as conditions. An
// apply without any field removes them. If the object's definition does not allow that, they stay, and
// the changes list the object.
func (c *Cluster) release(ctx context.Context, kind schema.GroupVersionResource, name string) (out []Change, err error) {
	list, err := c.objects.Resource(kind).List(ctx, metav1.ListOptions{})
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("context %s: list %s: %w", c.Context, kind.Resource, err)
	}
	var errs []error
	force := true
	for _, o := range list.Items {
		for _, f := range o.GetManagedFields() {
			if f.Manager != written.Manager && f.Manager != written.StatusManager || f.Operation != metav1.ManagedFieldsOperationApply {
				continue
			}
			empty := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":%q}}`, kind.GroupVersion().String(), name, o.GetName(), o.GetNamespace())
			var subresource []string
			if f.Subresource != "" {
				subresource = []string{f.Subresource}
			}
			_, err := c.objects.Resource(kind).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, []byte(empty),
				metav1.PatchOptions{FieldManager: f.Manager, Force: &force}, subresource...)
			switch {
			case apierrors.IsInvalid(err):
				kept := change("kept", &o)
				kept.Why = "its definition needs what strait wrote into it: " + err.Error()
				out = append(out, kept)
			case ignoreNotFound(err) != nil:
				errs = append(errs, fmt.Errorf("context %s: release %s %s/%s: %w", c.Context, name, o.GetNamespace(), o.GetName(), err))
			}
		}
	}
	return out, errors.Join(errs...)
}

// RemoveInstalled deletes what install created: the workloads and their RBAC rules, the namespace
// if install created it, and the CRDs that install created, unless there are objects of them. The
// changes list what stays, with the reason.
func (c *Cluster) RemoveInstalled(ctx context.Context) ([]Change, error) {
	all := func(o *unstructured.Unstructured) bool {
		return o.GetNamespace() == "" || o.GetNamespace() == c.Namespace
	}
	out, err := c.deleteListed(ctx, installed, partOf+"="+Daemon, false, all)
	if err != nil {
		return out, err
	}
	changes, err := c.removeCRDs(ctx)
	out = append(out, changes...)
	if err != nil {
		return out, err
	}
	if err := c.removeNamed(ctx); err != nil {
		return out, err
	}
	changes, err = c.deleteListed(ctx, []schema.GroupVersionResource{resource("", "v1", "namespaces")}, partOf+"="+Daemon, false,
		func(o *unstructured.Unstructured) bool { return o.GetName() == c.Namespace })
	return append(out, changes...), err
}

// removeNamed deletes the objects in strait's namespace that are known by name: what the leader wrote,
// and the Secrets of strait clusterset and of strait-view.
func (c *Cluster) removeNamed(ctx context.Context) error {
	rows := append(slices.Clone(written.Rows), written.Row{Resource: secrets, Names: []string{SecretName, View}, End: written.Named})
	for _, row := range rows {
		for _, name := range row.Names {
			err := c.objects.Resource(row.Resource).Namespace(c.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
			if ignoreNotFound(err) != nil {
				return fmt.Errorf("context %s: delete %s %s: %w", c.Context, row.Resource.Resource, name, err)
			}
		}
	}
	return nil
}

// removeCRDs deletes the CRDs that strait installed, except those of which objects are left.
func (c *Cluster) removeCRDs(ctx context.Context) (out []Change, err error) {
	list, err := c.objects.Resource(crds).List(ctx, metav1.ListOptions{LabelSelector: partOf + "=" + Daemon})
	if err != nil {
		return nil, fmt.Errorf("context %s: list CRDs: %w", c.Context, err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(o.Object, "spec", "names", "plural")
		objects, err := c.objects.Resource(resource(group, served(o), plural)).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return out, fmt.Errorf("context %s: list %s: %w", c.Context, plural, err)
		}
		if len(objects.Items) > 0 {
			kept := change("kept", o)
			kept.Why = "it still has objects: kubectl get " + plural + " -A; delete the CRD yourself once they are gone"
			out = append(out, kept)
			continue
		}
		if err := c.objects.Resource(crds).Delete(ctx, o.GetName(), metav1.DeleteOptions{}); ignoreNotFound(err) != nil {
			return out, fmt.Errorf("context %s: delete CRD %s: %w", c.Context, o.GetName(), err)
		}
		out = append(out, change("deleted", o))
	}
	return out, nil
}

// served returns a version that a CRD serves: the one that it stores, if it serves that.
func served(crd *unstructured.Unstructured) (version string) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		v, _ := v.(map[string]any)
		name, _ := v["name"].(string)
		if stored, _ := v["storage"].(bool); v["served"] == true && (version == "" || stored) {
			version = name
		}
	}
	return version
}

// WaitNamespaceGone waits until a namespace that is being deleted is gone, with everything in it.
func (c *Cluster) WaitNamespaceGone(ctx context.Context) error {
	ns, err := get[corev1.Namespace](ctx, c, namespaces, "", c.Namespace)
	if err != nil || ns.DeletionTimestamp == nil {
		return ignoreNotFound(err)
	}
	return poll(ctx, waitEvery, func() (bool, error) {
		_, err := get[corev1.Namespace](ctx, c, namespaces, "", c.Namespace)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}
