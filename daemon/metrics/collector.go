package metrics

import (
	"cmp"
	"runtime/debug"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("strait_"+name, help, labels, nil)
}

// No label is called "cluster": federated setups use that name. The local cluster's name comes from
// the scrape.
var (
	buildInfo = desc("build_info", "Always 1; the labels give the version, the revision and the kind of mesh.",
		"version", "revision", "mesh_mode")
	members = desc("gossip_members", "Nodes of the clusterset by what gossip knows about them: alive (this node "+
		"included), quiet (daemon down, machine answers), silent, held, dead (its own cluster says so).", "state")
	refused   = desc("gossip_refused_total", "What came to the gossip port and was refused, by kind.", "why")
	gossiped  = desc("gossip_bytes_total", "Bytes that gossip sent or received, with TLS and without headers, by transport: udp or tcp.", "transport", "direction")
	origins   = desc("origins", "Writers whose records this node holds.")
	frontends = desc("frontends", "Frontends in the kernel's map.")
	backends  = desc("backends", "Backends in the kernel's map.")
	lastHeard = desc("remote_cluster_last_heard_timestamp_seconds",
		"When a node of the cluster was last heard by gossip, in Unix time; absent if not since the daemon started.",
		"remote_cluster")
	remoteState = desc("remote_cluster_state",
		"1 for the state that the cluster is in: joined (heard), quiet (no daemon is heard, machines answer) or held "+
			"(nothing is heard; kept as last known).",
		"remote_cluster", "state")
	tunnels = desc("tunnels", "This node's tunnels to a cluster's nodes by what probes say that they carry: unknown, carrying, lossy, "+
		"narrow (only small packets), returning (carried nothing until lately), one-way, silent, never (no handshake).",
		"remote_cluster", "state")
	tunnelRTT  = desc("tunnel_rtt_seconds", "The longest round-trip time inside this node's tunnels to a cluster's nodes.", "remote_cluster")
	tunnelLoss = desc("tunnel_loss_ratio", "The largest part of the last probes that was lost in one of this node's tunnels to a cluster's nodes.", "remote_cluster")
	dropped    = desc("tunnel_dropped_packets_total", "Packets out of the tunnels that did not pass: refused, as neither for pods nor answers, "+
		"or untracked, of which some may be answers.", "reason")
	configObjects = desc("config_objects",
		"Objects of another cluster for clusters that accept its configuration, by what becomes of them here: accepted or left_out.",
		"remote_cluster", "result")
	unwritten = desc("imports_to_write",
		"Services whose imports this node, as its cluster's leader, has yet to write to the API server, or could not.")
	written = desc("api_writes_total",
		"Writes to the API server that this node tried as its cluster's leader, by verb, kind of object, and result: ok or failed.",
		"verb", "kind", "result")
	problems = desc("problems", "Problems that strait status shows.", "severity")
	coded    = desc("problems_by_code", "Problems that strait status shows, by their code, which strait help explains; absent for a code that none has.",
		"code", "severity")
	leader        = desc("leader", "1 if this node leads its cluster: it writes the cluster's objects and its record.")
	drained       = desc("drained_ratio", "Which part of its share a drain has taken from this node's own cluster, 0 to 1.")
	remoteDrained = desc("remote_cluster_drained_ratio", "Which part of its share a drain has taken from a cluster, 0 to 1.", "remote_cluster")
	pinned        = desc("authority_pinned", "1 if only the clusters that are pinned are believed; 0 means everybody who has the gossip key.")
	statementEnds = desc("statement_expiry_timestamp_seconds", "When the root's statement about this node's key expires, in Unix time, "+
		"unless it is renewed before; absent without one.")
	remoteRTT = desc("remote_cluster_rtt_seconds", "The shortest round-trip time to a node of a cluster, outside the tunnels; absent if it is not known.", "remote_cluster")
	ready     = desc("ready", "1 if the daemon is ready: its plan is in the kernel, as /readyz has it.")
	attached  = desc("hooks_attached", "1 if the socket hooks are attached; 0 means that connections bypass strait.")
)

// gauges computes gauges, and totals of the kernel's counters, when it is scraped.
type gauges struct{ m *Metrics }

// Describe sends every series that Collect may send.
func (gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range slices.Concat(trafficDescs, []*prometheus.Desc{buildInfo, members, refused, gossiped, origins, frontends, backends,
		lastHeard, remoteState, tunnels, tunnelRTT, tunnelLoss, dropped, configObjects, unwritten, written, problems, coded, ready, attached, pinned, leader, drained, remoteDrained, statementEnds, remoteRTT}) {
		ch <- d
	}
}

// Collect sends what the sources report. Before the first plan it sends only build_info, ready,
// gossip_bytes_total and api_writes_total.
func (c gauges) Collect(ch chan<- prometheus.Metric) {
	c.m.look(func(s *api.Status, members map[string]int, totals *tally) { collect(ch, c.m.build, s, members, totals) })
	for _, b := range c.m.gossiped() {
		ch <- prometheus.MustNewConstMetric(gossiped, prometheus.CounterValue, float64(b.Bytes), b.Transport, b.Direction)
	}
	for _, w := range c.m.writes() {
		result := "ok"
		if w.Failed {
			result = "failed"
		}
		ch <- prometheus.MustNewConstMetric(written, prometheus.CounterValue, float64(w.Count), label(w.Verb), label(w.Kind), result)
	}
}

func collect(ch chan<- prometheus.Metric, build Build, s *api.Status, nodes map[string]int, totals *tally) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		for i := range labels {
			labels[i] = label(labels[i])
		}
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	if s == nil {
		gauge(buildInfo, 1, build.Version, build.Revision, "unknown")
		gauge(ready, 0)
		return
	}
	gauge(buildInfo, 1, build.Version, build.Revision, s.Datapath.Mesh)
	gauge(ready, oneIf(s.Ready))
	gauge(origins, float64(s.Origins))
	gauge(frontends, float64(s.Datapath.Frontends))
	gauge(backends, float64(s.Datapath.Backends))
	gauge(attached, oneIf(s.Datapath.Attached))
	gauge(pinned, oneIf(s.Authority == api.AuthorityPinned))
	collectTraffic(ch, s.Datapath, totals)
	// Always send every state, so that sums and alerts never miss one.
	for _, state := range []string{"alive", "quiet", "silent", "held", "dead"} {
		gauge(members, float64(nodes[state]), state)
	}
	for why, n := range s.Refused {
		ch <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, float64(n), why)
	}
	ch <- prometheus.MustNewConstMetric(dropped, prometheus.CounterValue, float64(s.Datapath.Dropped.Refused), "refused")
	ch <- prometheus.MustNewConstMetric(dropped, prometheus.CounterValue, float64(s.Datapath.Dropped.Untracked), "untracked")
	gauge(unwritten, float64(s.Unwritten))
	collectProblems(gauge, s.WithDatapath().Problems)
	gauge(leader, oneIf(s.Leader))
	if !s.StatementEnds.IsZero() {
		gauge(statementEnds, float64(s.StatementEnds.Unix()))
	}
	for _, remote := range s.Clusters {
		if remote.State == api.Here {
			gauge(drained, remote.Drained)
		} else {
			collectCluster(gauge, remote)
		}
	}
}

// collectCluster sends what is known of another cluster.
func collectCluster(gauge func(*prometheus.Desc, float64, ...string), c api.Cluster) {
	gauge(remoteDrained, c.Drained, c.Name)
	if c.RTT > 0 {
		gauge(remoteRTT, c.RTT/1000, c.Name)
	}
	for _, state := range []api.ClusterState{api.Joined, api.Quiet, api.Held} {
		gauge(remoteState, oneIf(c.State == state), c.Name, string(state))
	}
	if t := c.Tunnels; t != nil {
		for _, state := range api.TunnelStates {
			gauge(tunnels, float64(t.States[state]), c.Name, state)
		}
		gauge(tunnelRTT, t.RTT/1000, c.Name)
		gauge(tunnelLoss, t.Loss, c.Name)
	}
	gauge(configObjects, float64(c.Config), c.Name, "accepted")
	gauge(configObjects, float64(c.ConfigLeftOut), c.Name, "left_out")
	if !c.Heard.IsZero() {
		gauge(lastHeard, float64(c.Heard.UnixMilli())/1000, c.Name)
	}
}

func collectProblems(gauge func(*prometheus.Desc, float64, ...string), all []problem.Problem) {
	for severity, n := range severities(all) {
		gauge(problems, n, severity)
	}
	for of, n := range codes(all) {
		gauge(coded, n, string(of.code), of.severity)
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func severities(ps []problem.Problem) map[string]float64 {
	count := map[string]float64{"error": 0, "warning": 0}
	for _, p := range ps {
		count[p.Severity()]++
	}
	return count
}

// codeOf is a kind of problem, and whether it is an error or a warning.
type codeOf struct {
	code     problem.Code
	severity string
}

func codes(ps []problem.Problem) map[codeOf]float64 {
	count := map[codeOf]float64{}
	for _, p := range ps {
		count[codeOf{p.Code, p.Severity()}]++
	}
	return count
}

// known returns the build with what the Go toolchain stamped into the program in the place of what
// the linker did not set.
func (b Build) known() Build {
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version = cmp.Or(b.Version, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = cmp.Or(b.Revision, s.Value)
			}
		}
	}
	return Build{cmp.Or(b.Version, "unknown"), cmp.Or(b.Revision, "unknown")}
}
