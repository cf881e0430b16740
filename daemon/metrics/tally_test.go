package metrics

import (
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/fake"
	"strait.io/strait/internal/l4"
)

// counted is a view of one service with one frontend and a backend per count, all in cluster b.
func counted(connects, refused uint64, backends map[string]uint64) *fake.View {
	f := api.Frontend{Addr: l4.New(netip.MustParseAddr("241.0.0.1"), 80, l4.TCP), Connects: connects, Refused: refused}
	for ip, n := range backends {
		f.Endpoints = append(f.Endpoints, api.Endpoint{Addr: netip.AddrPortFrom(netip.MustParseAddr(ip), 8080), Cluster: "b", Connects: n})
	}
	return &fake.View{Status: api.Status{Clusters: []api.Cluster{{Name: "a"}, {Name: "b"}}},
		Services: []api.Service{{Name: "default/serve", Frontends: []api.Frontend{f}}}}
}

var (
	serveTCP  = frontendSeries{"default/serve", 80, l4.TCP}
	serveInB  = backendSeries{"default/serve", "b"}
	withoutIt = &fake.View{Status: api.Status{Clusters: []api.Cluster{{Name: "a"}}}}
)

// with counts what is new in a view.
func (t *tally) with(v *fake.View) *tally {
	t.count(v.Status.Clusters, v.Traffic)
	return t
}

// traffic is that of a series of frontends.
type traffic struct{ connects, refused uint64 }

func (t *tally) at(s frontendSeries) traffic {
	n := t.frontends[s]
	return traffic{n.connects, n.refused}
}

func TestTallyNeverFalls(t *testing.T) {
	type counts = map[string]uint64
	for _, c := range []struct {
		name  string
		views []*fake.View
		front traffic
		back  uint64
	}{
		{"as the kernel counts", []*fake.View{counted(9, 1, counts{"10.0.0.1": 4, "10.0.0.2": 5})}, traffic{9, 1}, 9},
		{"seen again", []*fake.View{counted(9, 1, counts{"10.0.0.1": 9}), counted(9, 1, counts{"10.0.0.1": 9})}, traffic{9, 1}, 9},
		{"a pod leaves", []*fake.View{counted(9, 0, counts{"10.0.0.1": 4, "10.0.0.2": 5}), counted(10, 0, counts{"10.0.0.1": 5})},
			traffic{10, 0}, 10},
		{"a pod comes", []*fake.View{counted(9, 0, counts{"10.0.0.1": 9}), counted(12, 0, counts{"10.0.0.1": 9, "10.0.0.2": 3})},
			traffic{12, 0}, 12},
		{"all pods leave", []*fake.View{counted(9, 0, counts{"10.0.0.1": 9}), counted(9, 2, nil)}, traffic{9, 2}, 9},
		{"a pod comes back with its counter at zero", []*fake.View{counted(9, 0, counts{"10.0.0.1": 9}), counted(9, 0, nil),
			counted(11, 0, counts{"10.0.0.1": 2})}, traffic{11, 0}, 11},
		{"the kernel's counters begin at 0 again", []*fake.View{counted(9, 3, counts{"10.0.0.1": 9}), counted(2, 1, counts{"10.0.0.1": 2})},
			traffic{11, 4}, 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			var total tally
			for _, v := range c.views {
				total.with(v)
			}
			if got := total.at(serveTCP); got != c.front {
				t.Errorf("frontend: %+v, want %+v", got, c.front)
			}
			if got := total.backends[serveInB].connects; got != c.back {
				t.Errorf("backends: %d, want %d", got, c.back)
			}
		})
	}
}

func TestTallyAddsFamilies(t *testing.T) {
	v := counted(9, 1, nil)
	six := v.Services[0].Frontends[0]
	six.Addr.IP, six.Connects, six.Refused = netip.MustParseAddr("fd00::1"), 3, 4
	v.Services[0].Frontends = append(v.Services[0].Frontends, six)
	got := new(tally).with(v)
	if len(got.frontends) != 1 || got.at(serveTCP) != (traffic{12, 5}) {
		t.Errorf("%+v", got)
	}
}

// TestTallyIsBounded: nothing stays of a service or a cluster that is gone.
func TestTallyIsBounded(t *testing.T) {
	full := func() *tally { return new(tally).with(counted(9, 1, map[string]uint64{"10.0.0.1": 9})) }
	if got := full(); len(got.seen) != 3 || len(got.backends) != 1 {
		t.Errorf("with the service: %+v", got)
	}
	if got := full().with(withoutIt); len(got.seen)+len(got.services)+len(got.frontends)+len(got.backends) != 0 {
		t.Errorf("without the service: %+v", got)
	}
	cluster := counted(9, 1, nil)
	cluster.Status.Clusters = cluster.Status.Clusters[:1]
	if got := full().with(cluster); len(got.backends) != 0 || got.at(serveTCP).connects != 9 {
		t.Errorf("without the cluster: %+v", got)
	}
}

// TestTallyCountsAll: whatever pods come and go, totals never fall, and are what was counted in
// all.
func TestTallyCountsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var total tally
		var connects, back uint64
		pods := map[string]uint64{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			pod := rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}).Draw(t, "pod")
			if rapid.Bool().Draw(t, "leaves") {
				delete(pods, pod)
			} else {
				n := rapid.Uint64Range(0, 5).Draw(t, "connects")
				pods[pod] += n
				connects, back = connects+n, back+n
			}
			before := total.backends[serveInB].connects
			total.with(counted(connects, 0, pods))
			if now := total.backends[serveInB].connects; now != back || now < before || total.at(serveTCP).connects != connects {
				t.Fatalf("backends %d after %d, want %d; frontend %+v, want %d", now, before, back, total.at(serveTCP), connects)
			}
		}
	})
}

func TestTrafficMetrics(t *testing.T) {
	m := New(Build{})
	src := fake.NewSource(fake.Sample())
	m.From(src, src)
	want := `# HELP strait_backend_connects_total Connections that the backends of a service in one cluster got, this node's own cluster included.
# TYPE strait_backend_connects_total counter
strait_backend_connects_total{remote_cluster="a",service="default/serve"} 5
strait_backend_connects_total{remote_cluster="b",service="default/serve"} 4
# HELP strait_frontend_connects_total Connections to a port of a service that got a backend, counted by the kernel (for an unconnected UDP socket: each choice of a backend).
# TYPE strait_frontend_connects_total counter
strait_frontend_connects_total{port="80",proto="TCP",service="default/serve"} 9
# HELP strait_frontend_refused_total Connections to a port of a service that were refused because it had no backend.
# TYPE strait_frontend_refused_total counter
strait_frontend_refused_total{port="80",proto="TCP",service="default/serve"} 2
# HELP strait_map_entries Entries in use in a map of the kernel.
# TYPE strait_map_entries gauge
strait_map_entries{map="services"} 2
# HELP strait_map_entries_limit Entries that a map of the kernel has room for.
# TYPE strait_map_entries_limit gauge
strait_map_entries_limit{map="services"} 64
# HELP strait_sockets_destroyed_total Sockets closed because their backend is gone, so that the client reconnects.
# TYPE strait_sockets_destroyed_total counter
strait_sockets_destroyed_total{proto="TCP"} 0
strait_sockets_destroyed_total{proto="UDP"} 3
`
	names := []string{"strait_backend_connects_total", "strait_frontend_connects_total", "strait_frontend_refused_total",
		"strait_map_entries", "strait_map_entries_limit", "strait_sockets_destroyed_total"}
	for range 2 { // a second scrape of the same view adds nothing
		if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
	}
	gone := fake.Sample()
	gone.Services[0].Frontends[0].Endpoints = gone.Services[0].Frontends[0].Endpoints[:1]
	src.Store(gone)
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), names...); err != nil {
		t.Errorf("after the pod of b left: %v", err)
	}
}

// TestFullMapIsAProblem: also where the daemon reports none.
func TestFullMapIsAProblem(t *testing.T) {
	m := New(Build{})
	v := fake.Sample()
	v.Status.Datapath.Maps[0].Used = v.Status.Datapath.Maps[0].Limit
	from(m, fake.NewSource(v))
	want := `# HELP strait_problems Problems that strait status shows.
# TYPE strait_problems gauge
strait_problems{severity="error"} 2
strait_problems{severity="warning"} 1
`
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), "strait_problems"); err != nil {
		t.Error(err)
	}
}

// growing answers each question with more connections than the one before.
type growing struct {
	fake.Source
	mu sync.Mutex
	n  uint64
}

func (g *growing) Traffic(each func(api.Traffic)) {
	g.mu.Lock()
	g.n++
	n := g.n
	g.mu.Unlock()
	counted(n, 0, map[string]uint64{"10.0.0.1": n}).Traffic(each)
}

// TestScrapesAtOnce: answers that overtake each other are not taken for counters that started
// again.
func TestScrapesAtOnce(t *testing.T) {
	m := New(Build{})
	src := &growing{}
	src.Store(counted(0, 0, nil))
	m.From(src, src)
	var scrapes sync.WaitGroup
	for range 8 {
		scrapes.Go(func() {
			for range 200 {
				m.look(func(*api.Status, map[string]int, *tally) {})
			}
		})
	}
	scrapes.Wait()
	if got := m.totals.backends[serveInB].connects; got != src.n {
		t.Errorf("%d connections counted, want %d", got, src.n)
	}
}
