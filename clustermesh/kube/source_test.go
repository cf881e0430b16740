package kube

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/internal/testutil"
)

// patient is how long a test waits for what takes a second on a machine at rest.
const patient = time.Minute

func TestSourceReadsTheCluster(t *testing.T) {
	b := newBench(t)
	_, err := b.core.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: string(b.node),
		Labels: map[string]string{corev1.LabelTopologyZone: "z1"}, Annotations: map[string]string{"strait.io/prefixes": "10.9.1.0/24"}},
		Spec:   corev1.NodeSpec{PodCIDR: "10.1.1.0/24", PodCIDRs: []string{"10.1.1.0/24"}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.7"}}}}, metav1.CreateOptions{})
	must(t, err)
	b.export("serve")
	b.slice("serve", nil, map[string]clustermesh.NodeName{"10.1.1.10": b.node, "10.1.2.10": "another", "10.9.9.9": ""})
	b.slice("serve", map[string]string{"endpointslice.kubernetes.io/managed-by": "strait.io"}, map[string]clustermesh.NodeName{"10.1.1.66": b.node})
	s := b.start()
	t.Logf("synced after %s", b.eventually("synced", patient, func() bool { _, ok := s.Local(); return ok }))
	if got := endpoints(s, b.name("serve")); got != "10.1.1.10 10.9.9.9" {
		t.Errorf("endpoints %q: want this node's and that of none, and none of strait's own", got)
	}
	local, _ := s.Local()
	node, found := local.NodeContent(b.node)
	if !found || node.Node.Locality.Zone != "z1" || len(node.Node.Prefixes) != 1 || node.Endpoints[0].Pod != "pod-10.1.1.10" {
		t.Errorf("node %+v", node)
	}
	if p := local.NodePrefixes[b.node]; len(p) != 1 || p[0].String() != "10.9.1.0/24" {
		t.Errorf("prefixes by annotation: %v", p)
	}
	if !reflect.DeepEqual(local.Namespaces, sortedUnique(local.Namespaces)) || len(local.Namespaces) < 4 {
		t.Errorf("namespaces %q", local.Namespaces)
	}
	id := s.Identity()
	if !id.Read || id.UID == "" || id.Node != addr("192.0.2.7") {
		t.Errorf("identity %+v", id)
	}

	// What happens later.
	b.export("late")
	t.Logf("an export was known after %s", b.eventually("a later export", patient, func() bool { return hasExport(s, b.name("late")) }))
	b.slice("late", nil, map[string]clustermesh.NodeName{"10.1.1.11": b.node})
	b.eventually("its endpoint", patient, func() bool { return endpoints(s, b.name("late")) == "10.1.1.11" })
	must(t, b.mcs.MulticlusterV1beta1().ServiceExports(b.ns).Delete(t.Context(), "late", metav1.DeleteOptions{}))
	b.eventually("the end of the export", patient, func() bool { return !hasExport(s, b.name("late")) && endpoints(s, b.name("late")) == "" })

	// A derived Service gives its import an address, a global one is global, and an alias exports.
	derived := b.service(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "derived-serve",
		Labels: map[string]string{"app.kubernetes.io/managed-by": "strait", "strait.io/service-import": "serve"}}})
	b.service(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "world", Annotations: map[string]string{"service.cilium.io/global": "true"}}})
	b.service(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "alias"}})
	_, err = b.direct.dynamic.Resource(gkeResource).Namespace(b.ns).
		Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "net.gke.io/v1", "kind": "ServiceExport",
			"metadata": map[string]any{"name": "alias"}}}, metav1.CreateOptions{})
	must(t, err)
	b.eventually("all three", patient, func() bool {
		local, _ := s.Local()
		allocated, global := false, false
		for _, a := range local.Allocations {
			allocated = allocated || a.Service == b.name("serve") && a.IP.String() == derived.Spec.ClusterIP
		}
		for _, g := range local.Globals {
			global = global || g.Service == b.name("world") && len(g.IPs) > 0
		}
		return allocated && global && hasExport(s, b.name("alias"))
	})
}

func sortedUnique(in []string) (out []string) {
	for i, s := range in {
		if i == 0 || s > in[i-1] {
			out = append(out, s)
		}
	}
	return out
}

// The cluster's Nodes are published as they come and go: the records of those that are gone are dropped by that.
func TestSourceNamesTheNodes(t *testing.T) {
	b := newBench(t)
	s := b.start()
	named := func() bool {
		local, ok := s.Local()
		return ok && slices.Contains(local.ClusterContent(nil, nil).Nodes, b.node)
	}
	b.eventually("synced", patient, func() bool { _, ok := s.Local(); return ok })
	if named() {
		t.Fatal("a Node that there is not")
	}
	_, err := b.core.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: string(b.node)}}, metav1.CreateOptions{})
	must(t, err)
	b.eventually("the Node", patient, named)
	must(t, b.core.CoreV1().Nodes().Delete(t.Context(), string(b.node), metav1.DeleteOptions{}))
	b.eventually("its end", patient, func() bool { return !named() })
}

// Of ServiceImports only those are read that people made.
func TestSourceReadsPeoplesImports(t *testing.T) {
	b := newBench(t)
	imports := b.mcs.MulticlusterV1beta1().ServiceImports(b.ns)
	t.Cleanup(func() {
		_ = imports.DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{}, metav1.ListOptions{})
	})
	for name, labels := range map[string]map[string]string{"theirs": nil, "ours": {object.LabelManagedBy: object.ManagedBy}} {
		_, err := imports.Create(t.Context(), &mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec: mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
		must(t, err)
	}
	s := New(Config{Client: b.gate.client(t), Node: b.node, BarredPatterns: []string{b.ns}, Log: testutil.Logger(t)})
	b.run(s.Run)
	b.eventually("a Problem of an import in a barred namespace", patient, func() bool {
		local, _ := s.Local()
		return hasProblem(local.Problems, "ServiceImport "+b.ns+"/theirs", "barred")
	})
	if got := names(s.watches[object.ImportResource]); slices.Contains(got, b.ns+"/ours") {
		t.Errorf("imports %q", got)
	}
}

// What the API server does not let strait read is unknown, which is not empty.
func TestSourceForbidden(t *testing.T) {
	b := newBench(t)
	b.export("serve")
	b.gate.deny("/endpointslices", http.StatusForbidden)
	b.gate.deny("/namespaces", http.StatusForbidden)
	s := b.start()
	b.eventually("a Problem that names the kind", patient, func() bool {
		local, _ := s.Local()
		return hasProblem(local.Problems, "access to endpointslices.discovery.k8s.io", "unknown", "ClusterRole") &&
			hasProblem(local.Problems, "access to namespaces", "ClusterRole")
	})
	time.Sleep(time.Second)
	if _, ok := s.Local(); ok {
		t.Fatal("the cluster counts as known without its EndpointSlices")
	}
	b.gate.deny("/endpointslices", 0)
	b.eventually("known, though namespaces are not", patient, func() bool { return hasExport(s, b.name("serve")) })
	if local, _ := s.Local(); local.Namespaces != nil {
		t.Errorf("namespaces %q are made up", local.Namespaces)
	}
	b.gate.deny("/namespaces", 0)
	b.eventually("no Problem is left", patient, func() bool {
		local, _ := s.Local()
		return !hasProblem(local.Problems, "access to") && local.Namespaces != nil
	})
}

// TestListAndWatchSuffice: the Source needs no right to get a single object of what it reads.
func TestListAndWatchSuffice(t *testing.T) {
	b := newBench(t)
	b.export("serve")
	user := "reader-" + b.ns
	var rules []rbacv1.PolicyRule
	for _, k := range object.Kinds {
		r := k.GroupResource()
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: []string{"list", "watch"}})
	}
	rights := b.core.RbacV1()
	_, err := rights.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}, metav1.CreateOptions{})
	must(t, err)
	_, err = rights.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}, metav1.CreateOptions{})
	must(t, err)
	limited := rest.CopyConfig(b.direct.REST)
	limited.Impersonate.UserName = user
	b.gate = newGate(t, limited)
	s := b.start()
	b.eventually("the export", patient, func() bool { return hasExport(s, b.name("serve")) })
	b.eventually("all kinds", patient, func() bool {
		local, _ := s.Local()
		return local.Namespaces != nil && !hasProblem(local.Problems, "access to")
	})
	if id := s.Identity(); !id.Read || id.UID == "" {
		t.Errorf("identity %+v", id)
	}
}

// Without the CRDs nothing is exported, a Problem names what to install, and strait finds it when it is there.
func TestSourceWithoutCRDs(t *testing.T) {
	b := newBench(t)
	b.export("serve")
	b.gate.deny("/apis/multicluster.x-k8s.io", http.StatusNotFound)
	started := time.Now()
	s := b.start()
	b.eventually("a Problem that names what to install", patient, func() bool {
		local, _ := s.Local()
		return hasProblem(local.Problems, "CustomResourceDefinition serviceexports.multicluster.x-k8s.io", "v1beta1", "install")
	})
	b.eventually("known without exports", patient, func() bool { _, ok := s.Local(); return ok })
	if took := time.Since(started); took < sure {
		t.Errorf("taken for none after %s: an API server that starts may not know its custom resources yet", took)
	}
	if hasExport(s, b.name("serve")) {
		t.Error("the gate is open")
	}
	b.gate.deny("/apis/multicluster.x-k8s.io", 0)
	took := b.eventually("the export, once the CRD is there", patient, func() bool { return hasExport(s, b.name("serve")) })
	t.Logf("found after %s", took)
	b.eventually("no Problem is left", patient, func() bool {
		local, _ := s.Local()
		return !hasProblem(local.Problems, "CustomResourceDefinition")
	})
}

// An API server that goes away changes nothing, is reported after a while, and is heard soon when it is back.
func TestSourceOutage(t *testing.T) {
	b := newBench(t)
	b.export("serve")
	b.slice("serve", nil, map[string]clustermesh.NodeName{"10.1.1.10": b.node})
	s := b.start()
	b.eventually("synced", patient, func() bool { return endpoints(s, b.name("serve")) == "10.1.1.10" })
	b.gate.set(true)
	closed := time.Now()
	b.slice("serve", nil, map[string]clustermesh.NodeName{"10.1.1.11": b.node}) // may take long, too
	b.eventually("a Problem", 2*away+patient, func() bool {
		local, ok := s.Local()
		if !ok || endpoints(s, b.name("serve")) != "10.1.1.10" {
			t.Fatalf("the outage changed what is known: %v %q", ok, endpoints(s, b.name("serve")))
		}
		return hasProblem(local.Problems, "API server "+b.gate.url, "stays in force")
	})
	if took := time.Since(closed); took < away {
		t.Errorf("reported after %s: a restart of the API server is no Problem", took)
	}
	b.gate.set(false)
	t.Logf("converged %s after the outage", b.eventually("what changed meanwhile", 2*lastPause+patient, func() bool {
		local, _ := s.Local()
		return endpoints(s, b.name("serve")) == "10.1.1.10 10.1.1.11" && !hasProblem(local.Problems, "API server")
	}))
}
