package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// goal is a metric that the design names, and the value that it should reach.
type goal struct {
	metric string
	// most or least is the value to reach. If both are nil, the number is only reported.
	most, least *float64
	what        string
}

func value(v float64) *float64 { return &v }

// goals are the rows of the table, in order.
var goals = []goal{
	{"tcp_connect_ratio", value(1.05), nil, "`connect()` through the hot frontend ÷ direct, p50"},
	{"tcp_connect_ratio_random", value(1.05), nil, "the same, any of 10,000 frontends"},
	{"udp_connected_ratio", value(1.02), nil, "round trip on a connected socket ÷ direct, p50"},
	{"udp_unconnected_ratio", value(1.15), nil, "first round trip of a fresh unconnected socket ÷ direct, p50"},
	{"udp_unconnected_ratio_random", value(1.08), nil, "the same, any of 10,000 frontends"},
	{"floor_udp_unconnected_ratio", nil, nil, "the smallest program that balances, in the same rounds"},
	{"floor_udp_unconnected_ratio_random", nil, nil, "the same, any of 10,000 frontends"},
	{"udp_unconnected_used_ratio", value(1.15), nil, "second round trip of a socket, to the hot frontend ÷ direct, p50"},
	{"stream_ratio", nil, value(0.99), "bulk TCP throughput ÷ direct"},
	{"floor_connect_ratio", nil, nil, "the smallest program that balances, in the rounds of `tcp_connect_ratio`"},
	{"floor_connect_ratio_random", nil, nil, "the same, any of 10,000 frontends"},
	{"hit_lookups_hot", value(3), nil, "`connect()` hook: a hit in hash lookups, one frontend"},
	{"hit_lookups_random", value(6), nil, "the same, any of 10,000 frontends"},
	{"floor_hit_lookups_hot", nil, nil, "a hit of the smallest program that balances, in the same lookups, one frontend"},
	{"floor_hit_lookups_random", nil, nil, "the same, any of 10,000 frontends"},
	{"weights_more_lookups_random", value(1), nil, "what weights add to a hit, in hash lookups, any of 5,000 frontends"},
	{"weights_more_lookups_hot", nil, nil, "the same, one frontend"},
	{"weights_hit_ratio_random", nil, nil, "time of a hit with weights ÷ without, any of 5,000 frontends"},
	{"weights_hit_ratio_hot", nil, nil, "the same, one frontend"},
	{"udp_hit_lookups_hot", nil, nil, "`sendto()` hook on a fresh socket: a hit in hash lookups, one frontend"},
	{"nft_connect_ratio", nil, nil, "`connect()` through kube-proxy's rules ÷ direct without netfilter, p50"},
	{"nft_rr_ratio", nil, nil, "1-byte request and answer through kube-proxy's rules ÷ direct, p50"},
	{"nft_strait_connect_ratio", nil, nil, "strait, in the same rounds"},
	{"nft_strait_rr_ratio", nil, nil, "strait, in the same rounds"},
	{"nft_load_s", nil, nil, "loading kube-proxy's rules for as many services with `nft -f`, s"},
	{"ipvs_connect_ratio", nil, nil, "`connect()` through kube-proxy's IPVS services ÷ direct, p50"},
	{"ipvs_rr_ratio", nil, nil, "1-byte request and answer through IPVS ÷ direct, p50"},
	{"ipvs_strait_connect_ratio", nil, nil, "strait, in the same rounds"},
	{"load_100k_s", value(1), nil, "100,000 backends into empty maps, s"},
	{"flip_one_ms", value(0.1), nil, "change one endpoint among 10,000 × 10, ms"},
	{"flip_5000_ms", value(25), nil, "change one endpoint of a frontend of 5,000, ms"},
	{"churn_failed_connects", value(0), nil, "connects that failed while their frontend flipped"},
	{"churn_wrong_backend", value(0), nil, "answers from a backend that was in no current set"},
	{"churn_connects", nil, value(200_000), "number of connects checked"},
	{"churn_flips_per_s", nil, value(1000), "flips of the four frontends per second"},
	{"torn_reads", value(0), nil, "choices of another frontend's backend, asserted in the kernel"},
	{"torn_reads_checked", nil, nil, "number of connects checked"},
	{"torn_updates_per_s", nil, value(100_000), "changes of sets per second meanwhile"},
	{"open_ms", value(150), nil, "open the balancer on pins that hold 10,000 × 10, ms"},
	{"open_new_ms", value(150), nil, "open it without pins, ms"},
	{"open_verifier_ms", nil, nil, "time that the kernel's verifier takes of either, ms"},
	{"restart_failed_connects", value(0), nil, "connects that failed or went wrong while the balancer was killed and restarted"},
	{"restart_broken", value(0), nil, "long-lived connections that broke meanwhile"},
	{"restart_in_force_ms", value(150), nil, "start of the balancer's process until the first desired state is in force, ms"},
	{"map_bytes_per_backend", nil, nil, "kernel memory of one more backend, bytes"},
	{"sign_us", nil, nil, "sign a node's record of ten endpoints, µs"},
	{"verify_us", nil, nil, "verify its signature, µs"},
	{"admit_us_per_record", nil, nil, "decide what of it its node may say, µs"},
	{"newcomer_1000_nodes_verify_ms", nil, nil, "all of it for the records and statements of 1,000 nodes, ms"},
	{"record_bytes", nil, nil, "bytes of the record"},
	{"seal_bytes", nil, nil, "bytes more that its signature and statement take"},
	{"forged_accepted", value(0), nil, "attacks by forged records, hostile nodes and hostile clusters that changed anything of another one"},
	{"forged_checked", nil, nil, "number of attacks tried"},
	{"attack_p50_ratio", value(2), nil, "another node's change until the map has it, under attack ÷ quiet, p50"},
	{"attack_p90_ratio", value(2), nil, "the same, p90"},
	{"attack_p99_ratio", value(2), nil, "the same, p99"},
	{"attack_failed_calls", value(0), nil, "calls of a client that failed meanwhile"},
	{"attack_rss_mb", value(1024), nil, "memory of the attacked straitd (RSS), the most, MB; the goal is the chart's limit"},
	{"attack_log_lines_per_minute", value(100), nil, "lines that it logs"},
	{"plan_ms", value(5), nil, "one of 100,000 endpoints changes, while all 10,000 services have weights and spill: the plan, ms"},
	{"what_if_ms", value(500), nil, "what 10,000 services would do without one of two clusters, ms"},
	{"flap_writes_per_s", value(2), nil, "writes of a frontend per second while a cluster's pods come and go, the most of six rhythms"},
	{"share_error_pct", value(1), nil, "a pod's share of 100,000 connects, counted less explained, the most of any, percentage points"},
	{"failover_ms", value(100), nil, "a cluster's last pod is not ready: until both clients on a node there are answered by another, ms"},
	{"drain_ms", value(1000), nil, "start of `strait cluster drain`: until none of six nodes sends new connections there, ms"},
}

// replicationGoals are those for how records reach all nodes. They are for 10,000 nodes in 100 clusters; the
// simulation has as many as this machine has memory for.
var replicationGoals = []goal{
	{"replication_nodes", nil, nil, "simulated nodes, in clusters of 100"},
	{"replication_half_ms", value(120), nil, "a change of one pod of ten: until half of the nodes have it, ms"},
	{"replication_p99_ms", value(350), nil, "until 99 % have it, ms"},
	{"replication_p99_ms_lossy", value(350), nil, "the same, with 1 % loss"},
	{"replication_change_bytes", nil, nil, "bytes for each node, signature, TLS, TCP and IP included"},
	{"replication_change_bytes_busy", value(150), nil, "the same, at 500 changes a second"},
	{"replication_p99_ms_busy", value(500), nil, "until 99 % have it, at 500 a second, ms"},
	{"replication_node_kb_s_busy", value(75), nil, "kB a second for each node, at 500 a second"},
	{"replication_relay_kb_s_busy", value(2500), nil, "kB a second that the node sends that sends most, at 500 a second"},
	{"replication_idle_bytes_s", value(3000), nil, "bytes a second for each node while nothing changes, without memberlist's"},
	{"replication_newcomer_kb", value(5000), nil, "kB that a new node receives until it has all records"},
	{"replication_newcomer_ms", value(5000), nil, "how long that takes, ms"},
	{"replication_cpu_rest_percent", value(1), nil, "processor of a node while nothing changes, % of one"},
	{"replication_memory_mb", value(60), nil, "memory of a node, MB; the records are shared with others' here"},
	{"replication_change_cpu_us", nil, nil, "processor of a node for a change, without decoding, µs"},
	{"replication_daemons", nil, nil, "real daemons' gossip in one process, in clusters of 12, without keys"},
	{"replication_daemons_form_s", value(10), nil, "until each of them hears each, s"},
	{"replication_daemons_form_mb", value(6), nil, "MB that all of them have sent by then"},
	{"replication_daemons_idle_bytes_s", value(1500), nil, "bytes a second that each sends while nothing changes, memberlist's included"},
}

// kubeGoals are the goals for the daemon in a Kubernetes cluster of 10,000 Services with 10
// endpoints each, all exported, with 1,000 nodes of another cluster as tunnel peers.
var kubeGoals = []goal{
	{"kube_rss_mb", value(150), nil, "memory of straitd (RSS) with everything loaded, MB"},
	{"turn_ms_one_change", value(10), nil, "one endpoint of another node changes: time until the map has it, p50, ms"},
	{"turn_p99_ms_one_change", value(30), nil, "the same, p99"},
	{"turn_syscalls_one_change", nil, nil, "netlink messages and bpf system calls of straitd for that change, p50"},
	{"readyz_us", value(200), nil, "`GET /readyz` on an open connection, p50, µs"},
	{"readyz_bytes", value(4096), nil, "bytes that straitd allocates for that request"},
	{"kube_sync_s", nil, nil, "start of straitd on a clean node until the maps hold everything, s"},
	{"kube_first_sync_s", value(400), nil, "the same, if its leader must first write all imports, s"},
	{"kube_services_alone_s", nil, nil, "time the API server alone needs for as many plain Services, s"},
	{"kube_watch_to_map_ms", nil, nil, "one endpoint changes: from the API server's answer to the map, ms"},
	{"kube_writes_per_change", value(2), nil, "writes of the leader for that change: a slice of the import, and one of the derived Service"},
	{"kube_writes_after_restart", value(0), nil, "writes of a new leader if nothing changed"},
	{"kube_mirrors_first_s", nil, nil, "a policy selects 5,000 Services of another cluster: until all mirrors are written, s"},
	{"kube_writes_per_new_mirror", value(2.1), nil, "writes for each: a Service and a slice"},
	{"kube_mirror_change_ms", nil, nil, "one endpoint of one changes: from its leader's word to the slice of the mirror, p50, ms"},
	{"kube_writes_per_mirror_change", value(1), nil, "writes for that change: the slice"},
	{"kube_policy_status_writes", value(5), nil, "writes of the policy's status, in all"},
}

func (g goal) verdict(v float64) string {
	switch {
	case g.most != nil && *g.most == 0 && v == 0:
		return "0"
	case g.most != nil && v > *g.most:
		return fmt.Sprintf("**missed** (≤ %g)", *g.most)
	case g.most != nil:
		return fmt.Sprintf("≤ %g", *g.most)
	case g.least != nil && v < *g.least:
		return fmt.Sprintf("**missed** (≥ %g)", *g.least)
	case g.least != nil:
		return fmt.Sprintf("≥ %g", *g.least)
	}
	return "–"
}

// figure formats a number with only as many digits as are meaningful.
func figure(v float64) string {
	switch {
	case v == float64(int64(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func (s summary) spread() string {
	if s.N < 2 {
		return "–"
	}
	return fmt.Sprintf("%s … %s (%d)", figure(s.Q1), figure(s.Q3), s.N)
}

// write prints the table of goals, then everything else that was measured.
func (r result) write(w io.Writer, goals []goal) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s Took %.0f s.\n\n", r.Machine, r.Took.Seconds())
	fmt.Fprintf(&b, "| metric | value | middle half of the rounds (count) | goal | meaning |\n|---|---|---|---|---|\n")
	named := map[string]bool{}
	for _, g := range goals {
		named[g.metric] = true
		s, ok := r.Metrics[g.metric]
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", g.metric, figure(s.Median), s.spread(), g.verdict(s.Median), g.what)
	}
	r.writeRest(&b, named)
	_, err := io.WriteString(w, b.String())
	return err
}

// missing returns those of the metrics that this result lacks without a reason.
func (r result) missing(metrics []string) (out []string) {
	for _, name := range metrics {
		if _, ok := r.Metrics[name]; !ok && !r.skips(name) {
			out = append(out, name)
		}
	}
	return out
}

// skips reports whether the result says why it lacks a metric.
func (r result) skips(metric string) bool {
	for prefix := range r.Skipped {
		if strings.HasPrefix(metric, prefix) {
			return true
		}
	}
	return false
}

// marks enclose the part of the page that the bench writes.
type marks struct{ begin, end string }

var (
	docMarks         = marks{"<!-- bench: begin; written by make bench BENCH_DOC=docs/benchmarks.md -->\n", "<!-- bench: end -->\n"}
	replicationMarks = marks{
		"<!-- replication: begin; written by make bench BENCH_PHASES=replication BENCH_DOC=docs/benchmarks.md -->\n", "<!-- replication: end -->\n",
	}
	kubeMarks = marks{"<!-- kube: begin; written by make bench BENCH_PHASES=kube BENCH_DOC=docs/benchmarks.md -->\n", "<!-- kube: end -->\n"}
)

// splice replaces the text between the marks of a page.
func splice(page, text string, m marks) (string, error) {
	before, rest, ok := strings.Cut(page, m.begin)
	_, after, ok2 := strings.Cut(rest, m.end)
	if !ok || !ok2 {
		return "", fmt.Errorf("the page has no marks %q and %q", strings.TrimSpace(m.begin), strings.TrimSpace(m.end))
	}
	return before + m.begin + text + m.end + after, nil
}

func readResult(path string) (r result, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read %s: %w", path, err)
	}
	return r, nil
}

// report is a part of the results, with its place on the page.
type report struct {
	result
	marks marks
	write func(io.Writer) error
	// lack are the metrics that should be there and are not.
	lack []string
}

// publish prints the results of the datapath and of the daemon, and writes them to the files that
// the user named. Either result can be empty.
func publish(o options, datapath, replicated, kube result) error {
	errs := []error{writeJSON(o.JSON, datapath, replicated, kube)}
	ours, theirs := datapath.part(ciliumPrefix, false), datapath.part(ciliumPrefix, true)
	reports := []report{
		{ours, docMarks, func(w io.Writer) error { return ours.write(w, goals) }, nil},
		{theirs, ciliumMarks, theirs.writeCilium, theirs.missing(ciliumMetrics())},
		{replicated, replicationMarks, func(w io.Writer) error { return replicated.write(w, replicationGoals) }, replicated.missing(metricsOf(replicationGoals))},
		{kube, kubeMarks, func(w io.Writer) error { return kube.write(w, kubeGoals) }, kube.missing(metricsOf(kubeGoals))},
	}
	if len(o.Phases) == 0 {
		reports[0].lack = ours.missing(o.measured())
	}
	for _, r := range reports {
		if len(r.Metrics) == 0 && len(r.Skipped) == 0 {
			continue
		}
		var table strings.Builder
		errs = append(errs, r.write(io.MultiWriter(&table, os.Stdout)))
		if len(r.Metrics) > 0 { // otherwise the page keeps what it has
			errs = append(errs, writeDoc(o.Doc, table.String(), r.marks))
		}
		if len(r.lack) > 0 {
			errs = append(errs, fmt.Errorf("not measured: %s", strings.Join(r.lack, ", ")))
		}
	}
	return errors.Join(errs...)
}

func metricsOf(goals []goal) (out []string) {
	for _, g := range goals {
		out = append(out, g.metric)
	}
	return out
}

func writeJSON(path string, results ...result) error {
	if path == "" {
		return nil
	}
	metrics := map[string]float64{}
	for _, r := range results {
		for name, s := range r.Metrics {
			metrics[name] = s.Median
		}
	}
	text, err := json.MarshalIndent(map[string]any{"metrics": metrics}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func writeDoc(path, table string, m marks) error {
	if path == "" {
		return nil
	}
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := splice(string(page), table, m)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(changed), 0o644)
}
