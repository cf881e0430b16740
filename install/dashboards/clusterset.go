package main

// clusterset is what an operator looks at first: who hears whom, where connections go, and what is wrong.
var clusterset = page{
	name: "clusterset", title: "strait: clusterset",
	description: "Clusters, tunnels, connections and problems, as the daemons of the scraped clusters see them.",
	choices:     []choice{{"cluster", "Scraped cluster", "strait_build_info"}},
	rows: []row{
		{"Now", []panel{
			{kind: number, title: "Daemons", description: "Daemons that answer a scrape.", width: 4, queries: []query{{"count(strait_build_info{@})", "daemons"}}},
			{kind: number, title: "Not ready", description: "Daemons that wait for their first plan.", width: 4, bad: 1, queries: []query{{"sum(1 - strait_ready{@})", "daemons"}}},
			{kind: number, title: "Errors", description: "Problems of severity error that strait status shows.", width: 4, bad: 1, queries: []query{{`sum(strait_problems{@,severity="error"})`, "errors"}}},
			{kind: number, title: "Warnings", description: "Problems of severity warning that strait status shows.", width: 4, queries: []query{{`sum(strait_problems{@,severity="warning"})`, "warnings"}}},
			{kind: name, title: "Leaders", description: "The node that writes a cluster's objects.", width: 4, queries: []query{{"strait_leader{@} == 1", "{{instance}}"}}},
			{kind: name, title: "Versions", description: "Builds that run; more than one while an upgrade is under way.", width: 4, queries: []query{{"count by (version) (strait_build_info{@})", "{{version}}"}}},
		}},
		{"What is wrong", []panel{
			{kind: list, title: "Firing alerts", width: 12, labels: []string{"severity", "alertname"}, queries: []query{{`count by (alertname, severity) (ALERTS{@,alertname=~"Strait.+",alertstate="firing"})`, ""}}},
			{kind: series, title: "Problems by code", description: "strait help CODE explains one.", width: 12, queries: []query{{"sum by (code, severity) (strait_problems_by_code{@})", "{{code}} ({{severity}})"}}},
		}},
		{"Clusters", []panel{
			{kind: list, title: "How many nodes see a cluster in which state", description: "joined: heard; quiet: only its machines answer; held: nothing answers.", width: 8, labels: []string{"remote_cluster", "state"}, queries: []query{{"sum by (remote_cluster, state) (strait_remote_cluster_state{@}) > 0", ""}}},
			{kind: series, title: "Clusters that are not heard", description: "Nodes that see the cluster as quiet or held.", width: 8, queries: []query{{`sum by (remote_cluster, state) (strait_remote_cluster_state{@,state=~"quiet|held"})`, "{{remote_cluster}} {{state}}"}}},
			{kind: series, title: "Round-trip time to each cluster", description: "Outside the tunnels, as gossip measures it; the shortest to a node of the cluster.", unit: "s", width: 8, queries: []query{{"avg by (remote_cluster) (strait_remote_cluster_rtt_seconds{@})", "{{remote_cluster}}"}}},
			{kind: series, title: "Nodes of the clusterset", description: "By what gossip hears; the view of the node that hears least.", width: 8, queries: []query{
				{`min(strait_gossip_members{@,state="alive"})`, "alive"}, {`max by (state) (strait_gossip_members{@,state!="alive"})`, "{{state}}"},
			}},
			{kind: series, title: "Propagation", description: "Time from when a cluster publishes until it is in force on half and on 99 of 100 nodes.", unit: "s", width: 8, queries: []query{
				{"histogram_quantile(0.5, sum by (remote_cluster, le) (rate(strait_propagation_seconds_bucket{@}[5m])))", "{{remote_cluster}} half"},
				{"histogram_quantile(0.99, sum by (remote_cluster, le) (rate(strait_propagation_seconds_bucket{@}[5m])))", "{{remote_cluster}} 99 %"},
			}},
			{kind: series, title: "Drained", description: "Which part of its share a drain has taken from a cluster.", unit: "percentunit", width: 8, queries: []query{{"max by (remote_cluster) (strait_remote_cluster_drained_ratio{@})", "{{remote_cluster}}"}}},
		}},
		{"Tunnels", []panel{
			{kind: matrix, title: "Round-trip time in the tunnels", description: "From each node to each cluster, the longest.", unit: "s", width: 12, labels: []string{"instance", "remote_cluster"}, queries: []query{{"max by (instance, remote_cluster) (strait_tunnel_rtt_seconds{@})", ""}}},
			{kind: matrix, title: "Tunnels that carry nothing", description: "From each node to each cluster.", width: 12, bad: 1, labels: []string{"instance", "remote_cluster"}, queries: []query{{`sum by (instance, remote_cluster) (strait_tunnels{@,state=~"one-way|silent|never"})`, ""}}},
			{kind: series, title: "Tunnels by state", width: 12, queries: []query{{"sum by (state) (strait_tunnels{@}) > 0", "{{state}}"}}},
			{kind: series, title: "Loss in the tunnels", description: "The largest part of the last probes that a tunnel to the cluster lost.", unit: "percentunit", width: 12, queries: []query{{"max by (remote_cluster) (strait_tunnel_loss_ratio{@})", "{{remote_cluster}}"}}},
		}},
		{"Connections", []panel{
			{kind: series, title: "Connections of Services", description: "The ten with most.", unit: "cps", width: 12, queries: []query{{"topk(10, sum by (service) (rate(strait_frontend_connects_total{@}[$__rate_interval])))", "{{service}}"}}},
			{kind: series, title: "Refused connections", description: "Connections to a Service without a backend.", unit: "cps", width: 12, queries: []query{{"topk(10, sum by (service) (rate(strait_frontend_refused_total{@}[$__rate_interval])))", "{{service}}"}}},
			{kind: series, title: "Which cluster answers", description: "Connections to the backends of each cluster.", unit: "cps", width: 12, queries: []query{{"sum by (remote_cluster) (rate(strait_backend_connects_total{@}[$__rate_interval]))", "{{remote_cluster}}"}}},
			{kind: series, title: "Share of each cluster by Service", unit: "percentunit", width: 12, queries: []query{{
				"sum by (service, remote_cluster) (rate(strait_backend_connects_total{@}[$__rate_interval]))" +
					" / on (service) group_left () (sum by (service) (rate(strait_backend_connects_total{@}[$__rate_interval])) > 0)", "{{service}} in {{remote_cluster}}",
			}}},
		}},
	},
}
