package writer

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab/apiserver"
)

// The KEP's examples with a user's own fields, in the group of its text.
const (
	kepExport = `{apiVersion: multicluster.k8s.io/v1alpha1, kind: ServiceExport, metadata: {name: serve}}`
	kepImport = `{apiVersion: multicluster.k8s.io/v1alpha1, kind: ServiceImport, metadata: {name: serve},
spec: {type: ClusterSetIP, ports: [{name: http, protocol: TCP, port: 80}], sessionAffinity: None}}`
)

// gkesImport is one that GKE's controller wrote, under a name that is exported here too.
const gkesImport = `
apiVersion: net.gke.io/v1
kind: ServiceImport
metadata:
  name: theirs
  annotations: {net.gke.io/derived-service: gke-mcs-1a8qqpah56}
  labels:
    app.kubernetes.io/managed-by: gke-mcs-controller.gke.io
    net.gke.io/backend-service-name: gkemcs-app-myapp
spec:
  ips: [34.118.229.70]
  ports: [{port: 8080, protocol: TCP}]
  sessionAffinity: None
  type: ClusterSetIP
status:
  clusters: [{cluster: projects/680206487583/locations/us-central1/memberships/gke-1}]
`

// foreignCRDs installs the MCS API's first CRDs as another group and version, until the test ends.
func (b *bench) foreignCRDs(group, version string) {
	b.t.Helper()
	lab := apiserver.Lab(b.t, 2)
	b.t.Cleanup(func() { dropForeign(b.t, lab, group) })
	apiserver.ForeignCRDs(b.t, lab, "c1", group, version)
	for _, plural := range []string{"serviceexports", "serviceimports"} {
		testutil.Eventually(b.t, 10*time.Second, func() error {
			_, err := b.in(group, version, plural).List(b.t.Context(), metav1.ListOptions{})
			return err
		})
	}
}

// kubectler is a lab of API servers.
type kubectler interface {
	Kubectl(ctx context.Context, cluster string, stdin []byte, args ...string) (string, error)
}

func dropForeign(t *testing.T, lab kubectler, group string) {
	t.Helper()
	// The test's context may be over.
	_, err := lab.Kubectl(context.Background(), "c1", nil, "delete", "crd", "--ignore-not-found", "serviceexports."+group, "serviceimports."+group)
	must(t, err)
}

func (b *bench) in(group, version, plural string) dynamic.ResourceInterface {
	return dynamic.NewForConfigOrDie(b.rest).Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural}).Namespace(b.ns)
}

// create creates an object from YAML.
func (b *bench) create(text string) {
	b.t.Helper()
	_, err := apiserver.Lab(b.t, 2).Kubectl(b.t.Context(), "c1", []byte(text), "-n", b.ns, "create", "-f", "-")
	must(b.t, err)
}

// foreign waits for an object of another group to pass.
func (b *bench) foreign(in dynamic.ResourceInterface, within time.Duration, check func(o map[string]any) error) {
	b.t.Helper()
	testutil.Eventually(b.t, within, func() error {
		o, err := in.Get(b.t.Context(), "serve", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := check(o.Object); err != nil {
			return fmt.Errorf("%w: %v", err, o.Object)
		}
		return nil
	})
}

func (b *bench) clusterIP() string {
	b.t.Helper()
	s, err := b.core.CoreV1().Services(b.ns).Get(b.t.Context(), "derived-serve", metav1.GetOptions{})
	must(b.t, err)
	return s.Spec.ClusterIP
}

// has checks an import's addresses and the number of clusters in its status.
func has(clusters int, ips ...string) func(map[string]any) error {
	return func(o map[string]any) error {
		got, _, _ := unstructured.NestedStringSlice(o, "spec", "ips")
		from, _, _ := unstructured.NestedSlice(o, "status", "clusters")
		if !slices.Equal(got, ips) || len(from) != clusters {
			return fmt.Errorf("ips %v, %d clusters; want %v, %d", got, len(from), ips, clusters)
		}
		return nil
	}
}

// conditionsAre checks the conditions of an export: "Valid=True".
func conditionsAre(want ...string) func(map[string]any) error {
	return func(o map[string]any) error {
		conditions, _, _ := unstructured.NestedSlice(o, "status", "conditions")
		var got []string
		for _, c := range conditions {
			c, _ := c.(map[string]any)
			got = append(got, fmt.Sprintf("%v=%v", c["type"], c["status"]))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("conditions %v, want %v", got, want)
		}
		return nil
	}
}

// failures are the writes that failed.
func failures(w *Writer) (out []write.Write) {
	for k := range w.Writes() {
		if k.Failed {
			out = append(out, k)
		}
	}
	return out
}

// Objects of the group in KEP-1645's text: an export gets its conditions, and an import that a user
// made gets the address and the clusters.
func TestOldGroup(t *testing.T) {
	b := newBench(t)
	b.foreignCRDs(mcs.OldGroup, "v1alpha1")
	exports, imports := b.in(mcs.OldGroup, "v1alpha1", "serviceexports"), b.in(mcs.OldGroup, "v1alpha1", "serviceimports")
	b.create(kepExport)
	b.create(kepImport)
	w, _ := b.start(b.account("list", "watch", "create", "patch", "delete"))
	v := b.view()
	v.Exports[0].Alias = written.OldExport
	w.Submit(v)
	b.foreign(exports, 20*time.Second, conditionsAre("Conflict=False", "Ready=True", "Valid=True"))
	b.eventually("import", ready)
	b.foreign(imports, 20*time.Second, has(2, b.clusterIP()))
	if n := b.atRest(w); n != 0 {
		t.Errorf("not settled: %v", w.Writes())
	}

	v = b.empty()
	v.Exports = slices.Clone(b.view().Exports)
	v.Exports[0].Alias, v.Exports[0].Exported, v.Exports[0].Valid, v.Exports[0].Reason, v.Exports[0].Message = written.OldExport, false, false, "NoService", "there is no Service"
	w.Submit(v)
	b.foreign(exports, 20*time.Second, conditionsAre("Ready=False", "Valid=False"))
	b.foreign(imports, 20*time.Second, has(0))
	b.foreign(imports, time.Second, func(o map[string]any) error {
		if ports, _, _ := unstructured.NestedSlice(o, "spec", "ports"); len(ports) != 1 {
			return fmt.Errorf("the user's ports are %v", ports)
		}
		return nil
	})
	if n := b.atRest(w); n != 0 || len(failures(w)) > 0 {
		t.Errorf("%d writes at rest; failed: %v", n, failures(w))
	}
	b.calm(w)
}

// A user wrote an address into the import: it is theirs, which is reported, and the rest is written.
func TestOldImportWithAnAddress(t *testing.T) {
	b := newBench(t)
	b.foreignCRDs(mcs.OldGroup, "v1alpha1")
	imports := b.in(mcs.OldGroup, "v1alpha1", "serviceimports")
	b.create(strings.Replace(kepImport, "spec: {", "spec: {ips: [42.42.42.42], ", 1))
	w, _ := b.start()
	w.Submit(b.view())
	b.eventually("import", ready)
	testutil.Eventually(t, 10*time.Second, func() error {
		if ps := w.Problems(); len(ps) != 1 || !strings.HasPrefix(ps[0].Object, written.OldImport+" ") || !strings.Contains(ps[0].Try, "remove this field") {
			return fmt.Errorf("problems %v", ps)
		}
		return nil
	})
	w.Submit(b.view(func(i *mcs.Import) { addPod(i, "c2", netip.MustParseAddr("10.2.0.9")) }))
	b.foreign(imports, time.Second, has(0, "42.42.42.42"))
}

// GKE's imports are written once their CRD is there, and go with the import. Those of GKE's own
// controller stay as they are.
func TestGKEImports(t *testing.T) {
	b := newBench(t)
	w, _ := b.start(b.account("list", "watch", "create", "patch", "delete"))
	view := b.view(func(i *mcs.Import) { i.Labels = map[string]string{"team": "a"} })
	w.Submit(view)
	b.eventually("import", ready)
	b.foreignCRDs(mcs.GKEGroup, "v1")
	imports := b.in(mcs.GKEGroup, "v1", "serviceimports")
	b.create(gkesImport)
	b.foreign(imports, checkEvery+30*time.Second, has(2, b.clusterIP()))
	b.foreign(imports, time.Second, func(o map[string]any) error {
		u := unstructured.Unstructured{Object: o}
		ports, _, _ := unstructured.NestedSlice(o, "spec", "ports")
		kind, _, _ := unstructured.NestedString(o, "spec", "type")
		if len(ports) != 2 || kind != "ClusterSetIP" || u.GetLabels()["team"] != "a" || u.GetLabels()["app.kubernetes.io/managed-by"] != "strait" ||
			u.GetAnnotations()["net.gke.io/derived-service"] != "derived-serve" {
			return fmt.Errorf("import")
		}
		return nil
	})
	if n := b.atRest(w); n != 0 {
		t.Errorf("not settled: %v", w.Writes())
	}
	theirs := view
	other := view.Imports[0].Make()
	other.Service.Name = "theirs"
	theirs.Imports = append(slices.Clone(view.Imports), made{other})
	w.Submit(theirs)
	b.rests(w, 0)
	o, err := imports.Get(t.Context(), "theirs", metav1.GetOptions{})
	must(t, err)
	if ips, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "ips"); !slices.Equal(ips, []string{"34.118.229.70"}) || len(o.GetManagedFields()) != 1 {
		t.Errorf("GKE's import is %v", o.Object)
	}

	w.Submit(b.empty())
	testutil.Eventually(t, 10*time.Second, func() error {
		if _, err := imports.Get(t.Context(), "serve", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the import stays: %v", err)
		}
		return nil
	})
	if _, err := imports.Get(t.Context(), "theirs", metav1.GetOptions{}); err != nil {
		t.Errorf("GKE's import is gone: %v", err)
	}
	b.written(w)
	b.calm(w)
	if len(failures(w)) > 0 {
		t.Errorf("failed: %v", failures(w))
	}
	dropForeign(t, apiserver.Lab(t, 2), mcs.GKEGroup) // a CRD that goes is followed too
	time.Sleep(2 * time.Second)
	w.Submit(b.view())
	b.eventually("import without GKE's CRD", ready)
	testutil.Eventually(t, checkEvery+30*time.Second, func() error {
		if ps := w.Problems(); len(ps) > 0 {
			return fmt.Errorf("problems %v", ps)
		}
		return nil
	})
}

// A kind of another group that strait may not read is a Problem, and the MCS API's own are written.
// Once it may be read, it is written.
func TestForeignKindThatCannotBeRead(t *testing.T) {
	b := newBench(t)
	b.foreignCRDs(mcs.GKEGroup, "v1")
	account := b.account("list", "watch", "create", "patch", "delete")
	roles := b.core.RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), "limited-"+b.ns, metav1.GetOptions{})
	must(t, err)
	all := role.Rules
	role.Rules = slices.DeleteFunc(slices.Clone(all), func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, mcs.GKEGroup) })
	role, err = roles.Update(t.Context(), role, metav1.UpdateOptions{})
	must(t, err)
	w, _ := b.start(account)
	w.Submit(b.view())
	b.eventually("import", ready)
	testutil.Eventually(t, 10*time.Second, func() error {
		if ps := w.Problems(); len(ps) != 1 || !strings.Contains(ps[0].Message, "no "+written.GKEImport+" is written") || !strings.Contains(ps[0].Try, "list and watch") {
			return fmt.Errorf("problems %v", ps)
		}
		return nil
	})
	if len(failures(w)) > 0 {
		t.Errorf("failed: %v", failures(w))
	}
	role.Rules = all
	_, err = roles.Update(t.Context(), role, metav1.UpdateOptions{})
	must(t, err)
	b.foreign(b.in(mcs.GKEGroup, "v1", "serviceimports"), time.Minute, has(2, b.clusterIP()))
	b.calm(w)
}

// An import that another implementation of the MCS API left behind lists its clusters, which are
// not those of the clusterset. They do not keep strait from serving it, and stay as they are.
func TestImportLeftByAnotherImplementation(t *testing.T) {
	for _, pinned := range []bool{false, true} {
		t.Run(fmt.Sprint("pinned ", pinned), func(t *testing.T) {
			b := newBench(t)
			i, err := b.mcs.MulticlusterV1beta1().ServiceImports(b.ns).Create(t.Context(), &mcsv1beta1.ServiceImport{
				ObjectMeta: metav1.ObjectMeta{Name: "serve"},
				Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Port: 80, Protocol: "TCP"}}},
			}, metav1.CreateOptions{FieldManager: "lighthouse-agent"})
			must(t, err)
			i.Status.Clusters = []mcsv1beta1.ClusterStatus{{Cluster: "cluster1"}, {Cluster: "cluster2"}}
			_, err = b.mcs.MulticlusterV1beta1().ServiceImports(b.ns).UpdateStatus(t.Context(), i, metav1.UpdateOptions{FieldManager: "lighthouse-agent"})
			must(t, err)
			w, _ := b.start()
			v := b.view()
			if pinned {
				v.Members = []clustermesh.ClusterName{"c1", "c2"}
			}
			w.Submit(v)
			got := b.eventually("import", ready)
			if len(got.Spec.IPs) != 1 {
				t.Errorf("ips %v", got.Spec.IPs)
			}
			b.rests(w, 0)
			if ps := w.Problems(); len(ps) > 0 {
				t.Errorf("problems %v", ps)
			}
			b.calm(w)
		})
	}
}

// An export with another implementation's conditions, and without a Service, gets strait's.
func TestExportLeftByAnotherImplementation(t *testing.T) {
	b := newBench(t)
	exports := b.mcs.MulticlusterV1beta1().ServiceExports(b.ns)
	e, err := exports.Create(t.Context(), &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Name: "serve"}}, metav1.CreateOptions{})
	must(t, err)
	e.Status.Conditions = []metav1.Condition{{Type: "Conflict", Status: metav1.ConditionTrue, Reason: "PortConflict", LastTransitionTime: metav1.Now()}}
	_, err = exports.UpdateStatus(t.Context(), e, metav1.UpdateOptions{FieldManager: "lighthouse-agent"})
	must(t, err)
	w, _ := b.start()
	v := b.empty()
	v.Exports = []clustermesh.ExportStatus{{Service: clustermesh.ServiceName{Namespace: b.ns, Name: "serve"}, Reason: "NoService", Message: "there is no Service"}}
	w.Submit(v)
	testutil.Eventually(t, 10*time.Second, func() error {
		e, err := exports.Get(t.Context(), "serve", metav1.GetOptions{})
		if err == nil && (len(e.Status.Conditions) != 3 || e.Status.Conditions[0].Status != metav1.ConditionFalse) {
			err = fmt.Errorf("conditions %+v", e.Status.Conditions)
		}
		return err
	})
	b.rests(w, 0)
	b.calm(w)
}
