package scale

import (
	"context"
	"fmt"
	"os"
	"testing"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab/apiserver"
)

func TestMain(m *testing.M) {
	if IsInner() {
		if err := Inner(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	apiserver.Main(m)
}

// TestSmall measures a small cluster: times mean little here, what is counted is exact.
func TestSmall(t *testing.T) {
	// At an interrupt it takes its lab down.
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(testutil.AtInterrupt(func() { cancel(); <-done }))
	got, err := Measure(ctx, Options{Services: 50, Endpoints: 4, Changes: 4, Turns: 4, Mirrors: 30, Peers: 20, Lab: apiserver.Options(t)})
	cancel()
	close(done)
	apiserver.Must(t, err)
	t.Log(got)
	// Seven writes for an import of one slice in each set, and one more where its export is judged twice; and a busy machine sees some imports in parts.
	for metric, most := range map[string]float64{
		"kube_rss_mb": 100, "kube_rss_peak_mb": 100, "kube_watch_to_map_ms": 2000,
		"kube_first_sync_s": 60, "kube_services_alone_s": 60, "kube_sync_s": 20,
		"kube_writes_per_new_import": 10, "kube_writes_per_change": 2,
		"kube_mirrors_first_s": 20, "kube_mirror_change_ms": 5000, "kube_writes_per_mirror_change": 1, "kube_policy_status_writes": 3,
		"turn_ms_one_change": 2000, "turn_ms_one_change_few_peers": 2000, "turn_syscalls_one_change": 10_000, "readyz_us": 20_000,
	} {
		if v, ok := got[metric]; !ok || v <= 0 || v > most {
			t.Errorf("%s is %v (there: %v), want at most %v", metric, v, ok, most)
		}
	}
	// A Service and a slice for each mirror, the policy itself, and its statuses.
	if n := got["kube_writes_per_new_mirror"] * 30; n < 61 || n > 64 {
		t.Errorf("30 new mirrors took %v writes", n)
	}
	if n := got["kube_writes_after_restart"]; n != 0 {
		t.Errorf("a restarted daemon wrote %v times where nothing had changed", n)
	}
}

func TestSumWrites(t *testing.T) {
	n, err := sumWrites(`# HELP apiserver_request_total x
apiserver_request_total{code="200",component="apiserver",dry_run="",group="multicluster.x-k8s.io",resource="serviceimports",scope="resource",subresource="status",verb="APPLY",version="v1beta1"} 3
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="services",scope="resource",subresource="",verb="POST",version="v1"} 1.2e+04
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="services",scope="resource",subresource="",verb="GET",version="v1"} 7
apiserver_request_total{code="201",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 9
`)
	if n != 12003 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}
