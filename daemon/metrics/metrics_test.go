package metrics

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"strait.io/strait/daemon/api/fake"
)

func TestMetricsLint(t *testing.T) {
	m := New(Build{})
	from(m, fake.NewSource(fake.Sample()))
	m.Observe("socklb", time.Millisecond, nil)
	m.Observe("socklb", time.Millisecond, errors.New("x"))
	findings, err := testutil.GatherAndLint(m.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Errorf("%s: %s", f.Metric, f.Text)
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "strait_") {
			own++
		}
		for _, series := range f.Metric {
			for _, l := range series.Label {
				if l.GetName() == "cluster" {
					t.Errorf("%s has a label cluster, which federation owns", f.GetName())
				}
			}
		}
	}
	if own != 38 {
		t.Errorf("%d metrics of strait, want 38", own)
	}
}

func TestMetricsFollowTheView(t *testing.T) {
	m := New(Build{})
	src := fake.NewSource(fake.Sample())
	m.From(src, src)
	check := func(want string, names ...string) {
		t.Helper()
		if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
	}
	check(`# HELP strait_api_writes_total Writes to the API server that this node tried as its cluster's leader, by verb, kind of object, and result: ok or failed.
# TYPE strait_api_writes_total counter
strait_api_writes_total{kind="Service",result="failed",verb="create"} 1
strait_api_writes_total{kind="ServiceImport",result="ok",verb="apply"} 3
`, "strait_api_writes_total")
	check(`# HELP strait_config_objects Objects of another cluster for clusters that accept its configuration, by what becomes of them here: accepted or left_out.
# TYPE strait_config_objects gauge
strait_config_objects{remote_cluster="b",result="accepted"} 2
strait_config_objects{remote_cluster="b",result="left_out"} 0
strait_config_objects{remote_cluster="c",result="accepted"} 0
strait_config_objects{remote_cluster="c",result="left_out"} 3
`, "strait_config_objects")
	check(`# HELP strait_tunnel_loss_ratio The largest part of the last probes that was lost in one of this node's tunnels to a cluster's nodes.
# TYPE strait_tunnel_loss_ratio gauge
strait_tunnel_loss_ratio{remote_cluster="b"} 0.25
# HELP strait_tunnel_rtt_seconds The longest round-trip time inside this node's tunnels to a cluster's nodes.
# TYPE strait_tunnel_rtt_seconds gauge
strait_tunnel_rtt_seconds{remote_cluster="b"} 0.0925
# HELP strait_tunnels This node's tunnels to a cluster's nodes by what probes say that they carry: unknown, carrying, lossy, narrow (only small packets), returning (carried nothing until lately), one-way, silent, never (no handshake).
# TYPE strait_tunnels gauge
strait_tunnels{remote_cluster="b",state="carrying"} 1
strait_tunnels{remote_cluster="b",state="lossy"} 0
strait_tunnels{remote_cluster="b",state="narrow"} 0
strait_tunnels{remote_cluster="b",state="never"} 0
strait_tunnels{remote_cluster="b",state="one-way"} 1
strait_tunnels{remote_cluster="b",state="returning"} 0
strait_tunnels{remote_cluster="b",state="silent"} 0
strait_tunnels{remote_cluster="b",state="unknown"} 0
`, "strait_tunnels", "strait_tunnel_rtt_seconds", "strait_tunnel_loss_ratio")
	check(`# HELP strait_gossip_members Nodes of the clusterset by what gossip knows about them: alive (this node included), quiet (daemon down, machine answers), silent, held, dead (its own cluster says so).
# TYPE strait_gossip_members gauge
strait_gossip_members{state="alive"} 2
strait_gossip_members{state="dead"} 1
strait_gossip_members{state="held"} 1
strait_gossip_members{state="quiet"} 0
strait_gossip_members{state="silent"} 0
# HELP strait_remote_cluster_state 1 for the state that the cluster is in: joined (heard), quiet (no daemon is heard, machines answer) or held (nothing is heard; kept as last known).
# TYPE strait_remote_cluster_state gauge
strait_remote_cluster_state{remote_cluster="b",state="held"} 0
strait_remote_cluster_state{remote_cluster="b",state="joined"} 1
strait_remote_cluster_state{remote_cluster="b",state="quiet"} 0
strait_remote_cluster_state{remote_cluster="c",state="held"} 1
strait_remote_cluster_state{remote_cluster="c",state="joined"} 0
strait_remote_cluster_state{remote_cluster="c",state="quiet"} 0
# HELP strait_remote_cluster_last_heard_timestamp_seconds When a node of the cluster was last heard by gossip, in Unix time; absent if not since the daemon started.
# TYPE strait_remote_cluster_last_heard_timestamp_seconds gauge
strait_remote_cluster_last_heard_timestamp_seconds{remote_cluster="b"} 1.7951832e+09
# HELP strait_problems Problems that strait status shows.
# TYPE strait_problems gauge
strait_problems{severity="error"} 1
strait_problems{severity="warning"} 1
# HELP strait_origins Writers whose records this node holds.
# TYPE strait_origins gauge
strait_origins 5
# HELP strait_frontends Frontends in the kernel's map.
# TYPE strait_frontends gauge
strait_frontends 2
# HELP strait_backends Backends in the kernel's map.
# TYPE strait_backends gauge
strait_backends 3
# HELP strait_hooks_attached 1 if the socket hooks are attached; 0 means that connections bypass strait.
# TYPE strait_hooks_attached gauge
strait_hooks_attached 1
`, "strait_gossip_members", "strait_remote_cluster_state", "strait_remote_cluster_last_heard_timestamp_seconds",
		"strait_problems", "strait_origins", "strait_frontends", "strait_backends", "strait_hooks_attached")

	check(`# HELP strait_problems_by_code Problems that strait status shows, by their code, which strait help explains; absent for a code that none has.
# TYPE strait_problems_by_code gauge
strait_problems_by_code{code="STR3101",severity="error"} 1
strait_problems_by_code{code="STR3102",severity="warning"} 1
# HELP strait_leader 1 if this node leads its cluster: it writes the cluster's objects and its record.
# TYPE strait_leader gauge
strait_leader 0
# HELP strait_drained_ratio Which part of its share a drain has taken from this node's own cluster, 0 to 1.
# TYPE strait_drained_ratio gauge
strait_drained_ratio 0
# HELP strait_remote_cluster_drained_ratio Which part of its share a drain has taken from a cluster, 0 to 1.
# TYPE strait_remote_cluster_drained_ratio gauge
strait_remote_cluster_drained_ratio{remote_cluster="b"} 0
strait_remote_cluster_drained_ratio{remote_cluster="c"} 0
# HELP strait_remote_cluster_rtt_seconds The shortest round-trip time to a node of a cluster, outside the tunnels; absent if it is not known.
# TYPE strait_remote_cluster_rtt_seconds gauge
strait_remote_cluster_rtt_seconds{remote_cluster="b"} 0.09
# HELP strait_statement_expiry_timestamp_seconds When the root's statement about this node's key expires, in Unix time, unless it is renewed before; absent without one.
# TYPE strait_statement_expiry_timestamp_seconds gauge
strait_statement_expiry_timestamp_seconds 1.7952696e+09
`, "strait_remote_cluster_rtt_seconds", "strait_statement_expiry_timestamp_seconds", "strait_problems_by_code", "strait_leader", "strait_drained_ratio", "strait_remote_cluster_drained_ratio")

	check(`# HELP strait_gossip_bytes_total Bytes that gossip sent or received, with TLS and without headers, by transport: udp or tcp.
# TYPE strait_gossip_bytes_total counter
strait_gossip_bytes_total{direction="received",transport="udp"} 200
strait_gossip_bytes_total{direction="sent",transport="udp"} 300
`, "strait_gossip_bytes_total")
	check(`# HELP strait_ready 1 if the daemon is ready: its plan is in the kernel, as /readyz has it.
# TYPE strait_ready gauge
strait_ready 1
`, "strait_ready")
	detached := fake.Sample()
	detached.Status.Datapath.Attached, detached.Status.Leader = false, true
	detached.Status.Clusters[0].Drained, detached.Status.Clusters[1].Drained = 0.5, 1
	src.Store(detached)
	check(`# HELP strait_hooks_attached 1 if the socket hooks are attached; 0 means that connections bypass strait.
# TYPE strait_hooks_attached gauge
strait_hooks_attached 0
# HELP strait_leader 1 if this node leads its cluster: it writes the cluster's objects and its record.
# TYPE strait_leader gauge
strait_leader 1
# HELP strait_drained_ratio Which part of its share a drain has taken from this node's own cluster, 0 to 1.
# TYPE strait_drained_ratio gauge
strait_drained_ratio 0.5
# HELP strait_remote_cluster_drained_ratio Which part of its share a drain has taken from a cluster, 0 to 1.
# TYPE strait_remote_cluster_drained_ratio gauge
strait_remote_cluster_drained_ratio{remote_cluster="b"} 1
strait_remote_cluster_drained_ratio{remote_cluster="c"} 0
`, "strait_hooks_attached", "strait_leader", "strait_drained_ratio", "strait_remote_cluster_drained_ratio")

	src.Store(nil)
	check(`# HELP strait_ready 1 if the daemon is ready: its plan is in the kernel, as /readyz has it.
# TYPE strait_ready gauge
strait_ready 0
`, "strait_ready")
	check("", "strait_hooks_attached", "strait_problems", "strait_gossip_members")
}

func TestObserve(t *testing.T) {
	m := New(Build{})
	clock := time.Unix(1000, 500_000_000)
	m.now = func() time.Time { return clock }
	m.Observe("route", 2*time.Millisecond, nil)
	clock = clock.Add(time.Hour)
	m.Observe("route", 3*time.Millisecond, errors.New("no"))
	m.Observe("socklb", time.Second, nil)
	for _, c := range []struct {
		name string
		got  float64
		want float64
	}{
		{"route errors", testutil.ToFloat64(m.errors.WithLabelValues("route")), 1},
		{"socklb errors", testutil.ToFloat64(m.errors.WithLabelValues("socklb")), 0},
		{"route success, before the error", testutil.ToFloat64(m.lastSuccess.WithLabelValues("route")), 1000.5},
		{"targets timed", float64(testutil.CollectAndCount(m.duration)), 2},
		{"targets counted", float64(testutil.CollectAndCount(m.errors)), 2},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

// TestHostileNames: a name of another cluster cannot spoil the scrape.
func TestHostileNames(t *testing.T) {
	m := New(Build{})
	v := fake.Sample()
	v.Status.Clusters[1].Name = "b\xff\n\""
	twin := v.Services[0]
	v.Services[0].Name, twin.Name = "x\xfe/y", "x\xff/y" // one label for both
	v.Services = append(v.Services, twin)
	v.Services[0].Frontends[0].Endpoints[1].Cluster = "b\xff\n\""
	from(m, fake.NewSource(v))
	if _, err := m.registry.Gather(); err != nil {
		t.Error(err)
	}
}

// from makes a source answer the scrapes of m.
func from(m *Metrics, s *fake.Source) { m.From(s, s) }

// TestRemotes: the propagation of a cluster is there before its first canary, and goes with the
// cluster.
func TestRemotes(t *testing.T) {
	m := New(Build{})
	count := func() (out map[string]uint64) {
		out = map[string]uint64{}
		families, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != "strait_propagation_seconds" {
				continue
			}
			for _, one := range f.Metric {
				out[one.Label[0].GetValue()] = one.Histogram.GetSampleCount()
			}
		}
		return out
	}
	for _, step := range []struct {
		clusters []string
		took     string // the cluster of a canary, if any
		want     map[string]uint64
	}{
		{[]string{"east", "west"}, "", map[string]uint64{"east": 0, "west": 0}},
		{[]string{"east", "west"}, "west", map[string]uint64{"east": 0, "west": 1}},
		{[]string{"north", "west"}, "north", map[string]uint64{"north": 1, "west": 1}},
		{nil, "", map[string]uint64{}},
	} {
		if m.Remotes(step.clusters); step.took != "" {
			m.Propagated(step.took, time.Second)
		}
		if got := count(); !maps.Equal(got, step.want) {
			t.Errorf("%v: %v, want %v", step.clusters, got, step.want)
		}
	}
}
