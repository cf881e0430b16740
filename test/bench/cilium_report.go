package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// ciliumMarks enclose the tables of the phase cilium.
var ciliumMarks = marks{"<!-- cilium: begin; written by make bench BENCH_PHASES=cilium BENCH_DOC=docs/benchmarks.md -->\n", "<!-- cilium: end -->\n"}

// column is a side in a table of the phase cilium. prefix comes after ciliumPrefix in its metrics.
type column struct{ title, prefix string }

// row is what was measured. metric ends the names of its metrics.
type row struct{ title, metric string }

// versus is a table with one column for each side.
type versus struct {
	columns []column
	rows    []row
}

// ciliumTables: the first is of what a connection costs, the second of what happens to connections
// while sets change.
var ciliumTables = []versus{
	{[]column{{"floor", "floor_"}, {"strait", "strait_"}, {"Cilium", ""}, {"Cilium without tracing", "untraced_"}, {"kube-proxy, nftables", "nft_"}}, []row{
		{"`connect()`, hot ÷ direct", "connect_ratio"},
		{"`connect()`, random ÷ direct", "connect_ratio_random"},
		{"`connect()` that misses, hot ÷ direct", "connect_miss_ratio"},
		{"`connect()` that misses, random ÷ direct", "connect_miss_ratio_random"},
		{"UDP, first round trip of a fresh socket, hot ÷ direct", "udp_unconnected_ratio"},
		{"the same, random ÷ direct", "udp_unconnected_ratio_random"},
		{"UDP, second round trip, hot ÷ direct", "udp_unconnected_used_ratio"},
		{"the same, random ÷ direct", "udp_unconnected_used_ratio_random"},
		{"UDP, round trip of a connected socket, hot ÷ direct", "udp_connected_ratio"},
		{"the same, random ÷ direct", "udp_connected_ratio_random"},
		{"`connect()` hook, hit, hot, lookups", "hit_lookups_hot"},
		{"`connect()` hook, hit, random, lookups", "hit_lookups_random"},
		{"`connect()` hook, hit, hot, ns", "hit_ns_hot"},
		{"`connect()` hook, hit, random, ns", "hit_ns_random"},
		{"`connect()` hook, miss, hot, ns", "miss_ns_hot"},
		{"`connect()` hook, miss, random, ns", "miss_ns_random"},
		{"hook on the last `close()` after a hit, hot, ns", "hit_release_ns_hot"},
		{"hook on the last `close()` after a hit, random, ns", "hit_release_ns_random"},
		{"hook on the last `close()` after a miss, hot, ns", "miss_release_ns_hot"},
		{"`sendto()` hook on a fresh socket, hit, hot, ns", "udp_hit_ns_hot"},
		{"`sendto()` hook on a fresh socket, hit, random, ns", "udp_hit_ns_random"},
	}},
	{[]column{{"strait", "strait_"}, {"Cilium", ""}, {"Cilium, terminating first", "graceful_"}, {"Cilium, preallocated maps", "preallocated_"}}, []row{
		{"churn: connects", "churn_connects"},
		{"churn: changes of sets per second", "churn_flips_per_s"},
		{"churn: connects that failed", "churn_failed_connects"},
		{"churn: answers from a backend that was in no current set", "churn_wrong_backend"},
		{"storm: connects", "torn_reads_checked"},
		{"storm: changes of sets per second, with one dialer", "torn_updates_per_s"},
		{"storm: choices of another frontend's backend", "torn_reads"},
		{"storm: connects that were refused", "torn_refused"},
		{"storm: connects that found no service", "torn_missed"},
	}},
}

// ciliumMetrics are the metrics in the tables that each run must have.
func ciliumMetrics() (out []string) {
	for _, t := range ciliumTables {
		for _, r := range t.rows {
			out = append(out, ciliumPrefix+r.metric)
		}
	}
	return out
}

// part returns the result with those of the metrics that begin with the prefix, or with the others.
func (r result) part(prefix string, with bool) result {
	out := r
	out.Metrics, out.Skipped = map[string]summary{}, map[string]string{}
	for name, s := range r.Metrics {
		if strings.HasPrefix(name, prefix) == with {
			out.Metrics[name] = s
		}
	}
	for name, why := range r.Skipped {
		if strings.HasPrefix(name, prefix) == with {
			out.Skipped[name] = why
		}
	}
	return out
}

// writeCilium prints the tables of the phase cilium, and then its other figures.
func (r result) writeCilium(w io.Writer) error {
	var b strings.Builder
	if len(r.Metrics) > 0 {
		fmt.Fprintf(&b, "%s The whole run took %.0f s.\n", r.Machine, r.Took.Seconds())
	}
	named := map[string]bool{}
	for _, t := range ciliumTables {
		if len(r.Metrics) > 0 {
			r.writeVersus(&b, t, named)
		}
	}
	r.writeRest(&b, named)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeVersus prints one table, and adds its metrics to named.
func (r result) writeVersus(b *strings.Builder, t versus, named map[string]bool) {
	b.WriteString("\n| |")
	for _, c := range t.columns {
		fmt.Fprintf(b, " %s |", c.title)
	}
	fmt.Fprintf(b, "\n|---|%s\n", strings.Repeat("---|", len(t.columns)))
	for _, line := range t.rows {
		fmt.Fprintf(b, "| %s |", line.title)
		for _, c := range t.columns {
			name := ciliumPrefix + c.prefix + line.metric
			s, ok := r.Metrics[name]
			switch named[name] = true; {
			case !ok:
				b.WriteString(" – |")
			case s.N < 2:
				fmt.Fprintf(b, " %s |", figure(s.Median))
			default:
				fmt.Fprintf(b, " %s (%s … %s) |", figure(s.Median), figure(s.Q1), figure(s.Q3))
			}
		}
		b.WriteString("\n")
	}
}

// writeRest prints why metrics are lacking, and the metrics that are in no table.
func (r result) writeRest(b *strings.Builder, named map[string]bool) {
	for _, prefix := range slices.Sorted(maps.Keys(r.Skipped)) {
		fmt.Fprintf(b, "\nNot measured: `%s…`, because %s.\n", prefix, r.Skipped[prefix])
	}
	head := "\nOther figures:\n\n| metric | value | middle half of the rounds (count) |\n|---|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
		if s := r.Metrics[name]; !named[name] {
			fmt.Fprintf(b, "%s| `%s` | %s | %s |\n", head, name, figure(s.Median), s.spread())
			head = ""
		}
	}
}
