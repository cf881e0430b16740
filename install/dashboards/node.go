package main

// node is for one daemon, or a few: its turns, its maps, its gossip, and what it costs.
var node = page{
	name: "node", title: "strait: nodes",
	description: "Turns, maps, gossip and costs of the daemons.",
	choices:     []choice{{"cluster", "Scraped cluster", "strait_build_info"}, {"instance", "Node", `strait_build_info{cluster=~"$cluster"}`}},
	rows: []row{
		{"Turns", []panel{
			{kind: series, title: "Time of a turn", description: "From the plan to the kernel.", unit: "s", width: 8, queries: []query{
				{`histogram_quantile(0.5, sum by (le) (rate(strait_reconcile_duration_seconds_bucket{@,target="plan"}[$__rate_interval])))`, "median"},
				{`histogram_quantile(0.99, sum by (le) (rate(strait_reconcile_duration_seconds_bucket{@,target="plan"}[$__rate_interval])))`, "99th percentile"},
			}},
			{kind: series, title: "Time spent in each part", description: "Seconds per second, of all chosen nodes.", unit: "percentunit", width: 8, queries: []query{{`sum by (target) (rate(strait_reconcile_duration_seconds_sum{@,target!="plan"}[$__rate_interval]))`, "{{target}}"}}},
			{kind: series, title: "Turns", unit: "cps", width: 8, queries: []query{{`sum by (instance) (rate(strait_reconcile_duration_seconds_count{@,target="plan"}[$__rate_interval]))`, "{{instance}}"}}},
			{kind: series, title: "Failed attempts", description: "Each is retried.", unit: "cps", width: 12, queries: []query{{"sum by (instance, target) (rate(strait_reconcile_errors_total{@}[$__rate_interval]))", "{{instance}} {{target}}"}}},
			{kind: series, title: "Age of what is in force", description: "Since the kernel last matched a plan. A daemon plans at each change, and every 30 seconds.", unit: "s", width: 12, queries: []query{{`time() - strait_reconcile_last_success_timestamp_seconds{@,target="plan"}`, "{{instance}}"}}},
		}},
		{"Load balancer", []panel{
			{kind: series, title: "Use of the maps", description: "The fullest of the chosen nodes. affinities and sockets may be full.", unit: "percentunit", width: 8, queries: []query{{"max by (map) (strait_map_entries{@} / strait_map_entries_limit{@})", "{{map}}"}}},
			{kind: series, title: "Frontends and backends", width: 8, queries: []query{{"max(strait_frontends{@})", "frontends"}, {"max(strait_backends{@})", "backends"}}},
			{kind: series, title: "Sockets", description: "Closed because their backend is gone; records that found no room; records that were freed afterwards.", unit: "cps", width: 8, queries: []query{
				{"sum by (proto) (rate(strait_sockets_destroyed_total{@}[$__rate_interval]))", "closed {{proto}}"},
				{"sum(rate(strait_socket_records_lost_total{@}[$__rate_interval]))", "records lost"},
				{"sum(rate(strait_socket_records_swept_total{@}[$__rate_interval]))", "records freed late"},
			}},
			{kind: series, title: "Connections", unit: "cps", width: 12, queries: []query{{"sum by (instance) (rate(strait_frontend_connects_total{@}[$__rate_interval]))", "{{instance}}"}}},
			{kind: number, title: "Hooks not attached", description: "Nodes whose connections bypass strait.", width: 12, bad: 1, queries: []query{{"sum(1 - strait_hooks_attached{@})", "nodes"}}},
		}},
		{"Gossip and trust", []panel{
			{kind: series, title: "Nodes that are heard", width: 8, queries: []query{{`strait_gossip_members{@,state="alive"}`, "{{instance}}"}}},
			{kind: series, title: "Refused at the gossip port", unit: "cps", width: 8, queries: []query{{"sum by (why) (rate(strait_gossip_refused_total{@}[$__rate_interval])) > 0", "{{why}}"}}},
			{kind: series, title: "Records that are held", description: "Nodes and clusters that publish.", width: 8, queries: []query{{"strait_origins{@}", "{{instance}}"}}},
			{kind: series, title: "Bytes of gossip", description: "Of all chosen nodes.", unit: "Bps", width: 24, queries: []query{{"sum by (transport, direction) (rate(strait_gossip_bytes_total{@}[$__rate_interval]))", "{{transport}} {{direction}}"}}},
			{kind: series, title: "Until the node's statement expires", description: "It is renewed each hour, for 24 hours.", unit: "s", width: 12, queries: []query{{"strait_statement_expiry_timestamp_seconds{@} - time()", "{{instance}}"}}},
			{kind: series, title: "Dropped out of the tunnels", description: "Packets that are neither for pods nor answers, or whose connection the kernel does not know.", unit: "pps", width: 12, queries: []query{{"sum by (instance, reason) (rate(strait_tunnel_dropped_packets_total{@}[$__rate_interval]))", "{{instance}} {{reason}}"}}},
		}},
		{"Cost", []panel{
			{kind: series, title: "CPU", description: "Of one processor.", unit: "percentunit", width: 8, queries: []query{{"rate(process_cpu_seconds_total{@}[$__rate_interval]) and on (job, cluster, instance) strait_build_info{@}", "{{instance}}"}}},
			{kind: series, title: "Memory", unit: "bytes", width: 8, queries: []query{{"process_resident_memory_bytes{@} and on (job, cluster, instance) strait_build_info{@}", "{{instance}}"}}},
			{kind: series, title: "Time of a scrape", unit: "s", width: 8, queries: []query{{"scrape_duration_seconds{@} and on (job, cluster, instance) strait_build_info{@}", "{{instance}}"}}},
		}},
	},
}
