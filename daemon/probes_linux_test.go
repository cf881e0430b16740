package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/daemon/turn"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// What a question may cost a daemon with 10,000 services of 10 endpoints.
const (
	readyzTime  = 200 * time.Microsecond
	readyzBytes = 4 << 10
)

// TestReadyzCostsNothing: the kubelet asks every 2 s, on every node, however large the clusterset is.
func TestReadyzCostsNothing(t *testing.T) {
	if !testutil.Inside(t, 0) {
		return
	}
	d := serving(t, 10_000, 10)
	for _, path := range []string{"/readyz", "/healthz"} {
		took, bytes := cost(200, asking(t, d, path))
		t.Logf("%s: %v and %d bytes", path, took, bytes)
		if took > readyzTime || bytes > readyzBytes {
			t.Errorf("%s: %v and %d bytes a call, want at most %v and %d", path, took, bytes, readyzTime, readyzBytes)
		}
	}
}

// cost is the median time of a call, and the bytes that one allocates on average.
func cost(calls int, f func()) (time.Duration, uint64) {
	f()
	times := make([]time.Duration, calls)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range times {
		start := time.Now()
		f()
		times[i] = time.Since(start)
	}
	runtime.ReadMemStats(&after)
	slices.Sort(times)
	return times[calls/2], (after.TotalAlloc - before.TotalAlloc) / uint64(calls)
}

// patience is how long an answer may take while nothing hangs. It takes milliseconds; the kubelet waits a second,
// and a machine that is busy with other tests needs more. What hangs, hangs until the test lets it go.
const patience = 5 * time.Second

// TestAnswersWhileReconcileHangs: a probe neither waits for a Reconcile nor holds one up.
func TestAnswersWhileReconcileHangs(t *testing.T) {
	if !testutil.Inside(t, 0) {
		return
	}
	d := serving(t, 10, 2)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- d.api.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	testutil.Eventually(t, 5*time.Second, func() error {
		if !d.api.MetricsAddr().IsValid() {
			return errors.New("the metrics do not listen")
		}
		return nil
	})
	d.Status() // what the kernel can do is probed once in a daemon's life
	release := hang(t, d)

	web := &http.Client{Timeout: patience}
	for _, path := range []string{"/readyz", "/healthz", "/metrics"} {
		r, err := web.Get(fmt.Sprintf("http://%s%s", d.api.MetricsAddr(), path))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("%s: %d, %v: %s", path, r.StatusCode, err, body)
		}
		r.Body.Close()
	}
	short, stop := context.WithTimeout(ctx, patience)
	defer stop()
	status, err := client.OnSocket(d.config.Socket()).Status(short)
	if err != nil {
		t.Errorf("status: %v", err)
	} else if !status.Ready || status.Datapath.Frontends != 10 || len(status.Datapath.Maps) == 0 {
		t.Errorf("status: %+v", status)
	}
	release()
}

// hang makes the balancer hold its lock, and a Reconcile wait for it, until it is released: who changes
// opt-outs waits for the lock of their map's pins, which another process may hold.
func hang(t *testing.T, d *Daemon) (release func()) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(d.config.BPF.Pins, "layout-*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("pins have layouts %v, %v", dirs, err)
	}
	f, err := os.Open(dirs[0])
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	go func() { done <- d.kernel.lb.SetOptOut(nil) }()
	time.Sleep(100 * time.Millisecond)
	go func() {
		j := job{want: want{Desired: d.now().result.Desired}, caution: turn.Exact}
		done <- problem.Strict(frontends{d.kernel}.put(context.Background(), j))
	}()
	select {
	case err := <-done:
		t.Fatalf("nothing hangs: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	return func() {
		f.Close()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkProbes measures what probes, a scrape and `strait status` cost at 10,000 services of 10 endpoints.
func BenchmarkProbes(b *testing.B) {
	if !testutil.Inside(b, 0) {
		return
	}
	d := serving(b, 10_000, 10)
	for _, path := range []string{"/readyz", "/healthz", "/metrics"} {
		b.Run(strings.Trim(path, "/"), func(b *testing.B) {
			ask := asking(b, d, path)
			b.ReportAllocs()
			for b.Loop() {
				ask()
			}
		})
	}
}

// asking makes a function that asks the daemon and throws the answer away: that alone is measured.
func asking(t testing.TB, d *Daemon, path string) func() {
	h, r := d.api.MetricsHandler(), httptest.NewRequest(http.MethodGet, path, nil)
	return func() {
		w := &discard{header: http.Header{}}
		if h.ServeHTTP(w, r); w.status != 0 && w.status != http.StatusOK {
			t.Fatalf("%s: status %d", path, w.status)
		}
	}
}

// discard is a ResponseWriter that keeps nothing, so that it is not measured.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }

// serving is a daemon of cluster a, in the cgroup of Inside, that has applied a plan for services of cluster b.
// Its loop does not run.
func serving(t testing.TB, services, endpoints int) *Daemon {
	t.Helper()
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "gossip.key")
	if err := os.WriteFile(keyFile, []byte("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := ParseConfig([]byte(fmt.Sprintf(`
cluster: a
node: n1
source: {manifest: %[1]s}
stateDir: %[1]s/state
runDir: %[1]s/run
bpf: {pins: %[2]s/strait, cgroup: %[3]s, allowVirtualRoot: true}
gossip: {bind: "127.0.0.1:7946", keyFile: %[4]s}
mesh: {mode: "off", device: stt%[5]d}
metrics: {listen: "127.0.0.1:0"}
`, dir, testutil.BPFFS(t), testutil.InsideCgroup(), keyFile, os.Getpid())), func(*Config) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(c, Build{Version: "test"}, testutil.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.kernel.close()
		if err := CleanUp(c); err != nil {
			t.Error(err)
		}
	})
	state := offered(services, endpoints)
	result, _ := plan.Plan(plan.Inputs{State: state, Self: d.self(), Config: d.planConfig()}, plan.Past{})
	if got := len(result.Desired.Frontends); got != services {
		t.Fatalf("the plan has %d frontends, want %d: %v", got, services, result.Problems)
	}
	problems, _, err := d.kernel.stack.apply(t.Context(), want{Desired: datapath.Desired{Frontends: result.Desired.Frontends}}, turn.Exact, time.Now())
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	d.store(&moment{applied: time.Now(), state: state, result: result})
	return d
}

// offered is the state of a clusterset in which cluster b exports services of as many endpoints each, spread over
// its ten nodes, and cluster a has given them addresses.
func offered(services, endpoints int) clustermesh.State {
	s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}, Contacts: clustermesh.ByOrigin[clustermesh.Contact]{}}
	put := func(cluster, node string, c clustermesh.Content) {
		o := clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}
		s.Records = s.Records.With(o, clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 7, Version: 1}, Content: c})
		s.Contacts = s.Contacts.With(o, clustermesh.Alive)
	}
	var allocations []clustermesh.Allocation
	var exports []clustermesh.Export
	nodes := make([]clustermesh.Content, 10)
	for i := range services {
		name := clustermesh.ServiceName{Namespace: "default", Name: fmt.Sprintf("s%d", i)}
		allocations = append(allocations, clustermesh.Allocation{Service: name, IP: netip.AddrFrom4([4]byte{241, 1, byte(i >> 8), byte(i)})})
		exports = append(exports, clustermesh.Export{Service: name, Type: clustermesh.ClusterSetIP,
			Ports: []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80}}})
		for j := range endpoints {
			n := j % len(nodes)
			nodes[n].Endpoints = append(nodes[n].Endpoints, clustermesh.Endpoint{
				Service: name, Addr: netip.AddrFrom4([4]byte{10, byte(j), byte(i >> 8), byte(i)}),
				Node: clustermesh.NodeName(fmt.Sprintf("n%d", n)), Ready: true, Pod: fmt.Sprintf("p%d-%d", i, j),
				Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}},
			})
		}
	}
	put("a", "", clustermesh.Content{Allocations: allocations})
	put("a", "n1", clustermesh.Content{Node: &clustermesh.Node{Name: "n1"}})
	put("b", "", clustermesh.Content{Exports: exports})
	for n := range nodes {
		nodes[n].Node = &clustermesh.Node{Name: clustermesh.NodeName(fmt.Sprintf("n%d", n))}
		put("b", string(nodes[n].Node.Name), nodes[n])
	}
	return s
}
