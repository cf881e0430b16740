package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	dnsNamespace  = "kube-system"
	dnsConfigMap  = "coredns"
	dnsRole       = "strait-coredns"
	dnsAnnotation = "strait.io/corefile-hash"
	dnsKey        = "Corefile"
)

// DNS is the CoreDNS of a cluster.
type DNS struct {
	// Corefile is its configuration, version the resource version of the ConfigMap that has it.
	Corefile string
	version  string
	// mark is an annotation of its pods: the Corefile that strait last restarted them for.
	mark string
	// Deployment runs CoreDNS, with this service account and image.
	Deployment, Account, Image string
}

// ErrNoCoreDNS says that the cluster has no CoreDNS that can be changed.
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
	d := DNS{Corefile: m.Data[dnsKey], version: m.ResourceVersion}
	found, err := list[appsv1.Deployment](ctx, c, deployments, dnsNamespace, "")
	if err != nil {
		return d, fmt.Errorf("context %s: list Deployments of %s: %w", c.Context, dnsNamespace, err)
	}
	for _, x := range found {
		for _, v := range x.Spec.Template.Spec.Volumes {
			if v.ConfigMap != nil && v.ConfigMap.Name == dnsConfigMap {
				pod := x.Spec.Template.Spec
				d.Deployment, d.Account, d.Image = x.Name, pod.ServiceAccountName, pod.Containers[0].Image
				d.mark = x.Spec.Template.Annotations[dnsAnnotation]
				return d, nil
			}
		}
	}
	return d, fmt.Errorf("context %s: find the Deployment in %s that mounts the ConfigMap %s: %w", c.Context, dnsNamespace, dnsConfigMap, ErrNoCoreDNS)
}

var versionTag = regexp.MustCompile(`:v?(\d+)\.(\d+)\.(\d+)`)

// KnowsMulticluster reports whether the image's tag names a CoreDNS with the option multicluster:
// 1.12.2 or newer. known is false if the tag has no version.
func KnowsMulticluster(image string) (yes, known bool) {
	m := versionTag.FindStringSubmatch(image)
	if m == nil {
		return false, false
	}
	version := 0
	for _, part := range m[1:] {
		n, err := strconv.Atoi(part)
		if err != nil || n > 999 {
			return false, false
		}
		version = version*1000 + n
	}
	return version >= 1_012_002, true
}

// WriteDNS gives CoreDNS a Corefile and restarts it, pod by pod as its Deployment says. It does
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
		written, err := c.objects.Resource(configMaps).Namespace(dnsNamespace).Patch(ctx, dnsConfigMap, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: Manager})
		if err != nil {
			return false, fmt.Errorf("context %s: write ConfigMap %s/%s: %w", c.Context, dnsNamespace, dnsConfigMap, err)
		}
		d.version = written.GetResourceVersion()
	}
	if !roll {
		return write, nil
	}
	mark := ""
	if ours {
		mark = corefileHash(corefile) + "." + d.version
	}
	return true, c.annotate(ctx, "deployments", "Deployment", dnsNamespace, d.Deployment, dnsAnnotation, mark)
}

// left says what is left to do until CoreDNS runs with a Corefile: an earlier attempt may have
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

// WaitDNS waits until CoreDNS runs with its new Corefile.
func (c *Cluster) WaitDNS(ctx context.Context, d DNS) error {
	why := ""
	err := poll(ctx, waitEvery, func() (bool, error) {
		x, err := get[appsv1.Deployment](ctx, c, deployments, dnsNamespace, d.Deployment)
		if err != nil {
			return false, err
		}
		want, s := int32(1), x.Status
		if x.Spec.Replicas != nil {
			want = *x.Spec.Replicas
		}
		if s.ObservedGeneration >= x.Generation && s.UpdatedReplicas == want && s.Replicas == want && s.AvailableReplicas == want {
			return true, nil
		}
		why = c.dnsTrouble(ctx, x.Spec.Selector)
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("context %s: wait for CoreDNS: %w%s; undo with: strait dns setup --undo --context %s", c.Context, err, why, c.Context)
	}
	return nil
}

func (c *Cluster) dnsTrouble(ctx context.Context, selector *metav1.LabelSelector) string {
	found, err := list[corev1.Pod](ctx, c, pods, dnsNamespace, metav1.FormatLabelSelector(selector))
	if err != nil {
		return "" // the wait's own error says enough
	}
	var out strings.Builder
	for _, p := range found {
		if reason := notReady(&p); reason != "" {
			fmt.Fprintf(&out, "; %s: %s", p.Name, reason)
		}
	}
	return out.String()
}
