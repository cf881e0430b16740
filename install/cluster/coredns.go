package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"strait.io/strait/internal/coredns"
)

const (
	dnsNamespace = coredns.Namespace
	dnsConfigMap = "coredns"
	// nodeLocalConfigMap is that of NodeLocal DNSCache, as Kubernetes' addon names it.
	nodeLocalConfigMap = "node-local-dns"

	dnsRole = "strait-coredns"
	dnsKey  = "Corefile"
)

// DNS is the CoreDNS of a cluster, or the NodeLocal DNSCache in front of it, which is a CoreDNS
// too.
type DNS struct {
	// ConfigMap, in kube-system, has its configuration Corefile; version is its resource version.
	ConfigMap, Corefile string
	version             string
	// mark is an annotation of its pods: the Corefile that strait last restarted them for.
	mark string
	// Workload, a Deployment or a DaemonSet, runs it, with this service account and image.
	Workload, Account, Image string
	daemonSet                bool
}

// Title is what people call it.
func (d DNS) Title() string {
	if d.daemonSet {
		return "NodeLocal DNSCache"
	}
	return "CoreDNS"
}

// ErrNoCoreDNS means that the cluster has no CoreDNS that can be changed.
var ErrNoCoreDNS = errors.New("no CoreDNS that can be changed: it is managed, or something else serves DNS")

// ReadDNS finds CoreDNS where kubeadm, kind, k3s and similar distributions put it. The error is
// ErrNoCoreDNS if it is not there.
func (c *Cluster) ReadDNS(ctx context.Context) (DNS, error) {
	m, err := get[corev1.ConfigMap](ctx, c, configMaps, dnsNamespace, dnsConfigMap)
	if apierrors.IsNotFound(err) || err == nil && m.Data[dnsKey] == "" {
		return DNS{}, fmt.Errorf("context %s: read ConfigMap %s/%s: %w", c.Context, dnsNamespace, dnsConfigMap, ErrNoCoreDNS)
	}
	if err != nil {
		return DNS{}, fmt.Errorf("context %s: read ConfigMap %s/%s: %w", c.Context, dnsNamespace, dnsConfigMap, err)
	}
	d := DNS{ConfigMap: dnsConfigMap, Corefile: m.Data[dnsKey], version: m.ResourceVersion}
	found, err := list[appsv1.Deployment](ctx, c, deployments, dnsNamespace, "")
	if err != nil {
		return d, fmt.Errorf("context %s: list Deployments of %s: %w", c.Context, dnsNamespace, err)
	}
	for _, x := range found {
		if d.runs(x.Name, x.Spec.Template) {
			return d, nil
		}
	}
	return d, fmt.Errorf("context %s: find the Deployment in %s that mounts the ConfigMap %s: %w", c.Context, dnsNamespace, dnsConfigMap, ErrNoCoreDNS)
}

// ReadNodeLocalDNS finds NodeLocal DNSCache, which pods ask instead of CoreDNS; nil if there is
// none.
func (c *Cluster) ReadNodeLocalDNS(ctx context.Context) (*DNS, error) {
	m, err := get[corev1.ConfigMap](ctx, c, configMaps, dnsNamespace, nodeLocalConfigMap)
	if apierrors.IsNotFound(err) || err == nil && m.Data[dnsKey] == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("context %s: read ConfigMap %s/%s: %w", c.Context, dnsNamespace, nodeLocalConfigMap, err)
	}
	d := &DNS{ConfigMap: nodeLocalConfigMap, Corefile: m.Data[dnsKey], version: m.ResourceVersion, daemonSet: true}
	found, err := list[appsv1.DaemonSet](ctx, c, daemonSets, dnsNamespace, "")
	if err != nil {
		return nil, fmt.Errorf("context %s: list DaemonSets of %s: %w", c.Context, dnsNamespace, err)
	}
	for _, x := range found {
		if d.runs(x.Name, x.Spec.Template) {
			break
		}
	}
	return d, nil
}

// runs reports whether a workload's pods have the configuration. If so, it is the workload.
func (d *DNS) runs(name string, template corev1.PodTemplateSpec) bool {
	for _, v := range template.Spec.Volumes {
		if v.ConfigMap != nil && v.ConfigMap.Name == d.ConfigMap {
			d.Workload, d.Account, d.Image = name, template.Spec.ServiceAccountName, template.Spec.Containers[0].Image
			d.mark = template.Annotations[coredns.Mark]
			return true
		}
	}
	return false
}

// WriteDNS gives CoreDNS a Corefile and restarts it, pod by pod as its Deployment rolls out. It does
// only those of the two that are not done yet, and reports whether it did any. The API server
// refuses the write if the ConfigMap changed since it was read.
func (c *Cluster) WriteDNS(ctx context.Context, d DNS, corefile string, ours bool) (changed bool, err error) {
	write, roll := d.left(corefile, ours)
	if write {
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": d.version}, "data": map[string]any{dnsKey: corefile},
		})
		if err != nil {
			return false, err
		}
		written, err := c.objects.Resource(configMaps).Namespace(dnsNamespace).Patch(ctx, d.ConfigMap, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: Manager})
		if err != nil {
			return false, fmt.Errorf("context %s: write ConfigMap %s/%s: %w", c.Context, dnsNamespace, d.ConfigMap, err)
		}
		d.version = written.GetResourceVersion()
	}
	if !roll || d.Workload == "" {
		return write, nil
	}
	mark := ""
	if ours {
		mark = corefileHash(corefile) + "." + d.version
	}
	plural, kind := "deployments", "Deployment"
	if d.daemonSet {
		plural, kind = "daemonsets", "DaemonSet"
	}
	return true, c.annotate(ctx, plural, kind, dnsNamespace, d.Workload, coredns.Mark, mark)
}

// left returns what is left to do until CoreDNS runs with a Corefile: an earlier attempt may have
// stopped half way. If the Corefile is ours, the pods are marked with its hash and the ConfigMap's
// version. If it was reverted in the meantime and is written again, CoreDNS is restarted again too.
func (d DNS) left(corefile string, ours bool) (write, roll bool) {
	hash, _, _ := strings.Cut(d.mark, ".")
	write = corefile != d.Corefile
	if !ours {
		return write, d.mark != ""
	}
	return write, write || hash != corefileHash(corefile)
}

func corefileHash(corefile string) string {
	sum := sha256.Sum256([]byte(corefile))
	return hex.EncodeToString(sum[:8])
}

// DNSRights lets CoreDNS read ServiceImports.
func (c *Cluster) DNSRights(ctx context.Context, d DNS, dryRun bool) ([]Change, error) {
	meta := fmt.Sprintf("metadata: {name: %s, labels: {%s: strait-dns}}\n", dnsRole, partOf)
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n" + meta +
		"rules: [{apiGroups: [multicluster.x-k8s.io], resources: [serviceimports], verbs: [list, watch]}]\n"
	binding := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n" + meta +
		fmt.Sprintf("roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}\nsubjects: [{kind: ServiceAccount, name: %s, namespace: %s}]\n",
			dnsRole, d.Account, dnsNamespace)
	return c.Apply(ctx, [][]byte{[]byte(role), []byte(binding)}, dryRun)
}

// HasDNSRights reports whether DNSRights was called for this cluster, and so whether the Corefile
// has changes of strait's to undo.
func (c *Cluster) HasDNSRights(ctx context.Context) (bool, error) {
	_, err := c.objects.Resource(resource("rbac.authorization.k8s.io", "v1", "clusterroles")).Get(ctx, dnsRole, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("context %s: read ClusterRole %s: %w", c.Context, dnsRole, err)
	}
	return err == nil, nil
}

// RemoveDNSRights undoes DNSRights.
func (c *Cluster) RemoveDNSRights(ctx context.Context) error {
	var errs []error
	for _, plural := range []string{"clusterrolebindings", "clusterroles"} {
		kind := resource("rbac.authorization.k8s.io", "v1", plural)
		errs = append(errs, ignoreNotFound(c.objects.Resource(kind).Delete(ctx, dnsRole, metav1.DeleteOptions{})))
	}
	return errors.Join(errs...)
}

// HasImports reports whether the CRD that CoreDNS watches exists; CoreDNS would wait for it.
func (c *Cluster) HasImports(ctx context.Context) (bool, error) {
	_, err := c.objects.Resource(crds).Get(ctx, "serviceimports.multicluster.x-k8s.io", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// WaitDNS waits until the pods run with the new Corefile.
func (c *Cluster) WaitDNS(ctx context.Context, d DNS) error {
	if d.Workload == "" {
		return nil
	}
	why := ""
	err := poll(ctx, waitEvery, func() (bool, error) {
		done, selector, err := c.dnsRuns(ctx, d)
		if err != nil || done {
			return done, err
		}
		why = c.dnsTrouble(ctx, selector)
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("context %s: wait for %s: %w%s; undo with: strait dns setup --undo --context %s", c.Context, d.Title(), err, why, c.Context)
	}
	return nil
}

// dnsRuns reports whether all pods are ready with their current template, and selects them.
func (c *Cluster) dnsRuns(ctx context.Context, d DNS) (bool, *metav1.LabelSelector, error) {
	if d.daemonSet {
		x, err := get[appsv1.DaemonSet](ctx, c, daemonSets, dnsNamespace, d.Workload)
		if err != nil {
			return false, nil, err
		}
		return rolledOut(x), x.Spec.Selector, nil
	}
	x, err := get[appsv1.Deployment](ctx, c, deployments, dnsNamespace, d.Workload)
	if err != nil {
		return false, nil, err
	}
	want, s := int32(1), x.Status
	if x.Spec.Replicas != nil {
		want = *x.Spec.Replicas
	}
	return s.ObservedGeneration >= x.Generation && s.UpdatedReplicas == want && s.Replicas == want && s.AvailableReplicas == want, x.Spec.Selector, nil
}

func (c *Cluster) dnsTrouble(ctx context.Context, selector *metav1.LabelSelector) string {
	found, err := list[corev1.Pod](ctx, c, pods, dnsNamespace, metav1.FormatLabelSelector(selector))
	if err != nil {
		return "" // the wait's own error is enough
	}
	var out strings.Builder
	for _, p := range found {
		if reason := notReady(&p); reason != "" {
			fmt.Fprintf(&out, "; %s: %s", p.Name, reason)
		}
	}
	return out.String()
}
