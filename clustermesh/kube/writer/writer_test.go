package writer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	mcsclient "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab/apiserver"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

// bench is a namespace of a real API server: fakes do not know server-side apply.
type bench struct {
	t    *testing.T
	rest *rest.Config
	core kubernetes.Interface
	mcs  mcsclient.Interface
	ns   string
	name clustermesh.ServiceName
}

func newBench(t *testing.T) *bench { return newBenchIn(t, "c1") }

// newBenchIn is newBench in a cluster of the lab. The API server of c2 is the oldest.
func newBenchIn(t *testing.T, cluster string) *bench {
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: apiserver.Lab(t, 2).Kubeconfig()},
		&clientcmd.ConfigOverrides{CurrentContext: cluster}).ClientConfig()
	must(t, err)
	cfg.QPS = -1
	b := &bench{t: t, rest: cfg, core: kubernetes.NewForConfigOrDie(cfg), mcs: mcsclient.NewForConfigOrDie(cfg)}
	ns, err := b.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "strait-t-"}}, metav1.CreateOptions{})
	must(t, err)
	b.ns, b.name = ns.Name, clustermesh.ServiceName{Namespace: ns.Name, Name: "serve"}
	t.Cleanup(func() {
		// Best effort: the API server is the test's own, and tests look at their own namespace only.
		_ = b.core.CoreV1().Namespaces().Delete(context.Background(), b.ns, metav1.DeleteOptions{})
	})
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Config is what tests change.
type Config struct {
	write.Config
	freeEvery time.Duration
}

// open makes a Writer with an engine of its own.
func open(t *testing.T, c Config) *Writer {
	t.Helper()
	e, err := write.New(c.Config)
	must(t, err)
	w := New(e)
	w.freeEvery = cmp.Or(c.freeEvery, w.freeEvery)
	return w
}

// start runs a writer until the test ends or stop is called.
func (b *bench) start(change ...func(*Config)) (w *Writer, stop func()) {
	b.t.Helper()
	c := Config{Config: write.Config{REST: b.rest, Log: testutil.Logger(b.t)}}
	for _, f := range change {
		f(&c)
	}
	w = open(b.t, c)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Engine.Run(ctx, w) }()
	stopped := false
	stop = func() {
		if cancel(); !stopped {
			stopped = true
			if err := <-done; err != nil {
				b.t.Errorf("Run: %v", err)
			}
		}
	}
	b.t.Cleanup(stop)
	return w, stop
}

// view is that of c1, with serve exported by c1 and c2 and one pod each.
func (b *bench) view(change ...func(*mcs.Import)) mcs.View {
	i := mcs.Import{Import: clustermesh.Import{
		Service: b.name, Type: clustermesh.ClusterSetIP, Exporters: []clustermesh.ClusterName{"c1", "c2"},
		Ports:                 []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80}, {Name: "dns", Proto: l4.UDP, Port: 80}},
		InternalTrafficPolicy: "Cluster", Families: []clustermesh.Family{clustermesh.IPv4},
	}}
	for n, c := range i.Exporters {
		addPod(&i, c, netip.AddrFrom4([4]byte{10, byte(n + 1), 0, 1}))
	}
	for _, f := range change {
		f(&i)
	}
	v := b.empty()
	v.Imports = []mcs.Source[mcs.Import]{made{i}}
	v.Exports = []clustermesh.ExportStatus{{Service: b.name, Valid: true, Exported: true, Reason: "Valid"}}
	return v
}

func addPod(i *mcs.Import, c clustermesh.ClusterName, a netip.Addr) {
	i.Endpoints = append(i.Endpoints, clustermesh.ClusterEndpoint{Cluster: c, Endpoint: clustermesh.Endpoint{
		Addr: a, Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}}, Ready: true, Serving: true,
	}})
	i.Backends = append(i.Backends, mcs.Backend{Port: i.Ports[0], Addr: netip.AddrPortFrom(a, 8080), Cluster: c, Ready: true, Serving: true})
}

// made is an import that is there already.
type made struct{ i mcs.Import }

func (m made) Name() clustermesh.ServiceName      { return m.i.Service }
func (m made) Make() mcs.Import                   { return m.i }
func (m made) Same(o mcs.Source[mcs.Import]) bool { return reflect.DeepEqual(m.i, o.Make()) }

func (b *bench) empty() mcs.View {
	return mcs.View{
		Cluster: "c1", Namespaces: map[string]bool{b.ns: true}, Clusters: map[clustermesh.ClusterName]mcs.Knowledge{"c1": mcs.Current, "c2": mcs.Current},
	}
}

func (b *bench) export() {
	_, err := b.mcs.MulticlusterV1beta1().ServiceExports(b.ns).Create(b.t.Context(), &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Name: "serve"}}, metav1.CreateOptions{})
	must(b.t, err)
}

// eventually waits for the import to pass.
func (b *bench) eventually(what string, check func(*mcsv1beta1.ServiceImport) error) *mcsv1beta1.ServiceImport {
	b.t.Helper()
	var i *mcsv1beta1.ServiceImport
	testutil.Eventually(b.t, 10*time.Second, func() (err error) {
		if i, err = b.mcs.MulticlusterV1beta1().ServiceImports(b.ns).Get(b.t.Context(), "serve", metav1.GetOptions{}); err != nil {
			return err
		}
		if err = check(i); err != nil {
			return fmt.Errorf("%s: %w: %+v", what, err, i)
		}
		return nil
	})
	return i
}

func readyIs(status metav1.ConditionStatus, reason string) func(*mcsv1beta1.ServiceImport) error {
	return func(i *mcsv1beta1.ServiceImport) error {
		for _, c := range i.Status.Conditions {
			if c.Type == "Ready" && c.Status == status && c.Reason == reason && c.ObservedGeneration == i.Generation {
				return nil
			}
		}
		return fmt.Errorf("Ready is not %s %s", status, reason)
	}
}

var ready = readyIs(metav1.ConditionTrue, "Ready")

// calm waits until there are no Problems: they are taken back after the last write.
func (b *bench) calm(w *Writer) {
	b.t.Helper()
	testutil.Eventually(b.t, 5*time.Second, func() error {
		if ps := w.Problems(); len(ps) > 0 {
			return fmt.Errorf("problems %v", ps)
		}
		return nil
	})
}

// written waits until the writer has counted its last write, which a reader of the API server can see before.
func (b *bench) written(w *Writer) {
	b.t.Helper()
	testutil.Eventually(b.t, 5*time.Second, func() error {
		if n := w.Unwritten(); n > 0 {
			return fmt.Errorf("%d services are not written yet", n)
		}
		return nil
	})
}

func total(w *Writer) (n uint64) {
	for _, v := range w.Writes() {
		n += v
	}
	return n
}

// rests waits until nothing is written for a while, and returns what was since before.
func (b *bench) rests(w *Writer, before uint64) uint64 {
	b.t.Helper()
	for last := total(w); ; {
		time.Sleep(time.Second)
		now := total(w)
		if now == last {
			return now - before
		}
		last = now
	}
}

// atRest returns how much is written once everything is: zero, where nothing is written twice.
func (b *bench) atRest(w *Writer) uint64 {
	b.t.Helper()
	b.written(w)
	return b.rests(w, total(w))
}

func TestExportBecomesImport(t *testing.T) {
	b := newBench(t)
	b.export()
	w, stop := b.start()
	begin := time.Now()
	w.Submit(b.view(func(i *mcs.Import) { i.Labels = map[string]string{"team": "a"} }))
	i := b.eventually("import", ready)
	t.Logf("view to Ready in %v", time.Since(begin))
	s, err := b.core.CoreV1().Services(b.ns).Get(t.Context(), "derived-serve", metav1.GetOptions{})
	must(t, err)
	if len(i.Spec.IPs) != 1 || i.Spec.IPs[0] != s.Spec.ClusterIP || i.Labels["team"] != "a" || len(i.Spec.Ports) != 2 {
		t.Errorf("import %+v, ClusterIP %s", i, s.Spec.ClusterIP)
	}
	slicesOf := func(selector string) int {
		list, err := b.core.DiscoveryV1().EndpointSlices(b.ns).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		must(t, err)
		return len(list.Items)
	}
	if n, m := slicesOf("multicluster.kubernetes.io/service-name=serve"), slicesOf("kubernetes.io/service-name=derived-serve"); n != 2 || m != 2 {
		t.Errorf("%d slices of the import, %d of the derived Service", n, m)
	}
	e, err := b.mcs.MulticlusterV1beta1().ServiceExports(b.ns).Get(t.Context(), "serve", metav1.GetOptions{})
	must(t, err)
	if len(e.Status.Conditions) != 3 {
		t.Errorf("export's conditions %+v", e.Status.Conditions)
	}
	b.rests(w, 0)
	want := map[write.Write]uint64{
		{Verb: written.Create, Kind: "ServiceImport"}: 1, {Verb: written.Apply, Kind: "ServiceImport"}: 1,
		{Verb: written.ApplyStatus, Kind: "ServiceImport"}: 1, {Verb: written.ApplyStatus, Kind: "ServiceExport"}: 1,
		{Verb: written.Create, Kind: "Service"}: 1, {Verb: written.Create, Kind: "EndpointSlice"}: 4, // two of each cluster
	}
	if got := w.Writes(); !maps.Equal(got, want) {
		t.Errorf("writes for a new import: %v, want %v", got, want)
	}
	testutil.Eventually(t, 5*time.Second, func() error {
		list, err := b.core.EventsV1().Events(b.ns).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		about := map[string]bool{}
		for _, e := range list.Items {
			about[e.Regarding.Kind+" "+e.Reason] = true
		}
		if !about["ServiceImport Ready"] || !about["ServiceExport Exported"] {
			return fmt.Errorf("events %v", slices.Collect(maps.Keys(about)))
		}
		return nil
	})
	stop()
	b.calm(w)
	// The next leader finds everything as it should be.
	next, _ := b.start()
	next.Submit(b.view(func(i *mcs.Import) { i.Labels = map[string]string{"team": "a"} }))
	if n := b.rests(next, 0); n != 0 {
		t.Errorf("the next leader wrote %v", next.Writes())
	}
}

func TestOneChangeIsOneWriteOfEachSet(t *testing.T) {
	b := newBench(t)
	w, _ := b.start()
	many := func(i *mcs.Import) {
		for n := range 500 {
			addPod(i, "c2", netip.AddrFrom4([4]byte{10, 3, byte(n >> 8), byte(n)}))
		}
	}
	w.Submit(b.view(many))
	b.eventually("import", ready)
	b.rests(w, 0)
	before := total(w)
	w.Submit(b.view(many, func(i *mcs.Import) {
		i.Endpoints[77].Ready = false
		i.Backends = slices.Delete(i.Backends, 77, 78)
	}))
	if n := b.rests(w, before); n != 2 {
		t.Errorf("one endpoint of 502 changed: %d writes, want 2", n)
	}
}

// The API server keeps the hints for nodes that there are, and for such as there are not.
func TestHintsForNodes(t *testing.T) {
	b := newBench(t)
	w, _ := b.start()
	w.Submit(b.view(func(i *mcs.Import) {
		i.TrafficDistribution, i.Backends[0].Node = corev1.ServiceTrafficDistributionPreferSameNode, "n1"
	}))
	b.eventually("import", ready)
	b.calm(w)
	b.written(w)
	list, err := b.core.DiscoveryV1().EndpointSlices(b.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=derived-serve"})
	must(t, err)
	var nodes []string
	for _, s := range list.Items {
		nodes = append(nodes, s.Endpoints[0].Hints.ForNodes[0].Name)
	}
	if slices.Sort(nodes); !slices.Equal(nodes, []string{"c2.clusterset.invalid", "n1"}) {
		t.Errorf("hints for %v", nodes)
	}
	if n := b.atRest(w); n != 0 {
		t.Errorf("not settled: %d writes", n)
	}
}

// What an export no longer has must go, though a Create wrote it and not an apply.
func TestFieldsThatGo(t *testing.T) {
	b := newBench(t)
	w, _ := b.start()
	w.Submit(b.view(func(i *mcs.Import) {
		i.Labels, i.Annotations = map[string]string{"l": "1"}, map[string]string{"a": "1"}
		i.TrafficDistribution, i.AffinitySeconds = "PreferClose", 20
		i.Ports[0].AppProtocol = "http"
	}))
	i := b.eventually("import", ready)
	if i.Labels["l"] != "1" || i.Annotations["a"] != "1" || i.Spec.SessionAffinityConfig == nil || *i.Spec.Ports[0].AppProtocol != "http" {
		t.Fatalf("import %+v", i)
	}
	ip := i.Spec.IPs[0]
	_, err := b.mcs.MulticlusterV1beta1().ServiceImports(b.ns).Patch(t.Context(), "serve", "application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"theirs":"1"}}}`), metav1.PatchOptions{FieldManager: "another"})
	must(t, err)
	w.Submit(b.view(func(i *mcs.Import) { i.Ports = i.Ports[:1] }))
	i = b.eventually("import", func(i *mcsv1beta1.ServiceImport) error {
		if len(i.Spec.Ports) != 1 || i.Spec.TrafficDistribution != nil || i.Spec.SessionAffinityConfig != nil || i.Annotations["a"] != "" || i.Labels["l"] != "" {
			return fmt.Errorf("something stayed")
		}
		return ready(i)
	})
	s, err := b.core.CoreV1().Services(b.ns).Get(t.Context(), "derived-serve", metav1.GetOptions{})
	must(t, err)
	if len(s.Spec.Ports) != 1 || s.Spec.Ports[0].AppProtocol != nil || s.Spec.TrafficDistribution != nil || s.Spec.SessionAffinity != "None" {
		t.Errorf("derived Service %+v", s.Spec)
	}
	if i.Labels["theirs"] != "1" || s.Spec.ClusterIP != ip || i.Spec.IPs[0] != ip {
		t.Errorf("lost a user's label or the address: %v, %s, was %s", i.Labels, s.Spec.ClusterIP, ip)
	}
	b.calm(w)
	b.rests(w, 0)
	before := total(w)
	if n := b.rests(w, before); n != 0 {
		t.Errorf("not settled: %d writes", n)
	}
}

func TestLastUnexportRemovesAll(t *testing.T) {
	b := newBench(t)
	w, _ := b.start()
	w.Submit(b.view())
	b.eventually("import", ready)
	unknown := b.empty()
	unknown.Clusters["c2"] = mcs.Held
	w.Submit(unknown)
	b.rests(w, 0)
	b.eventually("kept while c2 is not heard", ready)
	if ps := w.Problems(); len(ps) != 1 || !ps[0].Warning {
		t.Errorf("problems %v", ps)
	}
	w.Submit(b.empty())
	testutil.Eventually(t, 10*time.Second, func() error {
		imports, err := b.mcs.MulticlusterV1beta1().ServiceImports(b.ns).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		services, err := b.core.CoreV1().Services(b.ns).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		eps, err := b.core.DiscoveryV1().EndpointSlices(b.ns).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		if n := len(imports.Items) + len(services.Items) + len(eps.Items); n > 0 {
			return fmt.Errorf("%d objects left", n)
		}
		return nil
	})
	b.calm(w)
}
