package api

import (
	"runtime/debug"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("strait_"+name, help, labels, nil)
}

// No label is called "cluster": federated set-ups own that name. The local cluster comes from the scrape.
var (
	buildInfo = desc("build_info", "Always 1; the labels say what runs and how the mesh is made.",
		"version", "revision", "mesh_mode")
	members = desc("gossip_members", "Nodes of the clusterset by what gossip knows of them: alive (this node "+
		"included), quiet (daemon down, machine answers), silent, held, dead (its own cluster says so).", "state")
	origins   = desc("origins", "Writers whose records this node holds.")
	frontends = desc("frontends", "Frontends in the kernel's map.")
	backends  = desc("backends", "Backends in the kernel's map.")
	lastHeard = desc("remote_cluster_last_heard_timestamp_seconds",
		"When a node of the cluster was last heard by gossip, in Unix time; absent if never in this life of the daemon.",
		"remote_cluster")
	remoteState = desc("remote_cluster_state",
		"1 for the state that the cluster is in: joined, or held (not heard; kept as last known).",
		"remote_cluster", "state")
	problems = desc("problems", "Problems that strait status shows.", "severity")
	attached = desc("hooks_attached", "1 if the socket hooks are attached; 0 means that connections bypass strait.")
)

// viewCollector computes gauges, and totals of the kernel's counters, from the view at the moment of the scrape.
type viewCollector struct{ m *Metrics }

// Describe names every series that Collect may send.
func (viewCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range slices.Concat(trafficDescs, []*prometheus.Desc{buildInfo, members, origins, frontends, backends,
		lastHeard, remoteState, problems, attached}) {
		ch <- d
	}
}

// Collect sends what the view tells. Before the first plan there is only the build's.
func (c viewCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		for i := range labels {
			labels[i] = label(labels[i])
		}
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	version, revision := buildVersion()
	v, totals := c.m.look()
	if v == nil {
		gauge(buildInfo, 1, version, revision, "unknown")
		return
	}
	if v.Status.Version != "" {
		version = v.Status.Version
	}
	gauge(buildInfo, 1, version, revision, v.Status.Datapath.Mesh)
	gauge(origins, float64(v.Status.Origins))
	gauge(frontends, float64(v.Status.Datapath.Frontends))
	gauge(backends, float64(v.Status.Datapath.Backends))
	gauge(attached, oneIf(v.Status.Datapath.Attached))
	collectTraffic(ch, v.Status.Datapath, totals)
	for state, n := range memberStates(v.Nodes) {
		gauge(members, n, state)
	}
	for severity, n := range severities(v.Status.withDatapath().Problems) {
		gauge(problems, n, severity)
	}
	for _, remote := range v.Status.Clusters {
		if remote.State == "here" {
			continue
		}
		for _, state := range []string{"joined", "held"} {
			gauge(remoteState, oneIf(remote.State == state), remote.Name, state)
		}
		if !remote.Heard.IsZero() {
			gauge(lastHeard, float64(remote.Heard.UnixMilli())/1000, remote.Name)
		}
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// memberStates counts each node once. Every state is present, so that a sum or an alert never lacks one.
func memberStates(nodes []Node) map[string]float64 {
	count := map[string]float64{"alive": 0, "quiet": 0, "silent": 0, "held": 0, "dead": 0}
	for _, n := range nodes {
		switch {
		case n.Dead:
			count["dead"]++
		case n.Contact == "self":
			count["alive"]++
		default:
			count[n.Contact]++
		}
	}
	return count
}

func severities(ps []Problem) map[string]float64 {
	count := map[string]float64{"error": 0, "warning": 0}
	for _, p := range ps {
		count[p.Severity()]++
	}
	return count
}

// buildVersion is what the Go toolchain stamped into the binary.
func buildVersion() (version, revision string) {
	version, revision = "unknown", "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, revision
	}
	if info.Main.Version != "" {
		version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = s.Value
		}
	}
	return version, revision
}
