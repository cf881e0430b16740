// Package arch checks that the source obeys the architecture: which package may import which, which
// packages are pure, which package owns each dependency, and the house rules that a reviewer would
// otherwise have to check.
//
// Input is the module's source tree; output is a list of violations, each saying what to do. The
// rules that are a matter of choice are data in this file, so a change of the architecture is a
// visible diff.
package arch

// Module is the path of strait's Go module.
const Module = "strait.io/strait"

// Package is one row of the import table: a folder of the module and which of the module's packages
// it may import.
type Package struct {
	Path string
	// Pure packages decide and do not act: no I/O, clock, randomness, goroutine, logger or context.
	Pure bool
	// Imports are the packages of the module that it may import, besides the leaves.
	Imports []string
	// Tests are additional packages that only its tests may import, besides internal/testutil.
	Tests []string
}

// leaves are packages that import no other package of the module. Every package that is not itself
// a leaf may import them.
var leaves = []string{"internal/l4", "internal/key", "internal/problem", "internal/enum", "internal/notify", "internal/durable", "internal/keyfile", "internal/gossipkey"}

// Table is the exact form of the architecture that ARCHITECTURE.md describes.
var Table = []Package{
	{Path: "internal/l4", Pure: true},
	{Path: "internal/key", Pure: true},
	{Path: "internal/gossipkey", Pure: true},
	{Path: "internal/problem", Pure: true},
	{Path: "internal/version", Pure: true},
	{Path: "internal/enum", Pure: true},
	{Path: "internal/tld", Pure: true},
	{Path: "internal/ovn", Pure: true},
	{Path: "internal/coredns", Pure: true},
	{Path: "internal/durable"}, // files: for shells only
	{Path: "internal/keyfile"}, // likewise
	{Path: "internal/notify"},  // channels: for shells only
	{Path: "internal/testutil"},
	// Builds machines in namespaces, for the demo and the Kubernetes lab.
	{Path: "internal/fabric"},

	// For programs of others: the types of strait.io, and clients that api/generate.sh makes of
	// them.
	{Path: "api/v1alpha1", Pure: true, Tests: []string{"api/client/fake"}},
	{Path: "api/client", Imports: []string{"api/client/typed/api/v1alpha1"}},
	{Path: "api/client/scheme", Imports: []string{"api/v1alpha1"}},
	{Path: "api/client/typed/api/v1alpha1", Imports: []string{"api/client/scheme", "api/v1alpha1"}},
	{Path: "api/client/typed/api/v1alpha1/fake", Imports: []string{"api/client/typed/api/v1alpha1", "api/v1alpha1"}},
	{Path: "api/client/fake", Imports: []string{"api/client", "api/client/typed/api/v1alpha1", "api/client/typed/api/v1alpha1/fake", "api/v1alpha1"}},

	// Packages that know Kubernetes and gossip. They never know the kernel.
	// Its tests ask whether a record can carry what it makes, as do those of object and daemon/plan.
	{Path: "clustermesh", Pure: true, Tests: []string{"clustermesh/record"}},
	{Path: "clustermesh/record", Pure: true, Imports: []string{"clustermesh"}},
	{Path: "clustermesh/locality", Pure: true, Imports: []string{"clustermesh"}},
	{Path: "clustermesh/authority", Pure: true, Imports: []string{"clustermesh", "clustermesh/record"}},
	// For tests of who is trusted.
	{Path: "clustermesh/authority/fake", Pure: true, Imports: []string{"clustermesh", "clustermesh/authority"}},
	{Path: "clustermesh/topology", Pure: true, Imports: []string{"clustermesh"}},
	{Path: "clustermesh/replica/splice", Pure: true},
	{Path: "clustermesh/replica", Pure: true, Imports: []string{"clustermesh", "clustermesh/record", "clustermesh/replica/splice", "clustermesh/topology"}},
	{Path: "clustermesh/trust", Pure: true, Imports: []string{"clustermesh", "clustermesh/authority", "clustermesh/replica"}, Tests: []string{"clustermesh/authority/fake"}},
	{Path: "clustermesh/object", Pure: true, Imports: []string{"clustermesh", "clustermesh/policy", "internal/ovn"}, Tests: []string{"clustermesh/record"}},
	// What strait writes: for those that decide, those that write, the metrics and strait uninstall.
	{Path: "clustermesh/written", Pure: true, Imports: []string{"clustermesh/object"}},
	{Path: "clustermesh/mcs", Pure: true, Imports: []string{"clustermesh", "clustermesh/object", "clustermesh/written"}},
	{Path: "clustermesh/kube/builtin"},
	// Carries out what the leader writes; each writer below uses it.
	{Path: "clustermesh/kube/write", Imports: []string{"clustermesh", "clustermesh/kube/builtin", "clustermesh/written"}, Tests: []string{"clustermesh/object"}},
	// The pure node composes the pure ones of these, and package gossip the rest. pool, stream, observe and
	// replica do not import each other.
	{Path: "clustermesh/gossip/member", Pure: true, Imports: []string{"clustermesh"}},
	{Path: "clustermesh/gossip/observe", Pure: true, Imports: []string{"clustermesh", "clustermesh/gossip/member"}},
	{Path: "clustermesh/gossip/meter"}, // for those that have sockets
	{Path: "clustermesh/gossip/pool", Imports: []string{"clustermesh/gossip/member", "clustermesh/gossip/meter"}},
	{Path: "clustermesh/gossip/stream", Imports: []string{"clustermesh", "clustermesh/gossip/member", "clustermesh/gossip/meter"}},
	{Path: "clustermesh/gossip/statelog"},
	{Path: "clustermesh/gossip/statedir", Imports: []string{"clustermesh", "clustermesh/replica", "clustermesh/gossip/statelog", "clustermesh/gossip/stream"}},
	{Path: "clustermesh/gossip/probe", Imports: []string{"clustermesh/gossip/observe"}},
	{Path: "clustermesh/gossip/node", Pure: true, Imports: []string{
		"clustermesh", "clustermesh/authority", "clustermesh/replica", "clustermesh/topology", "clustermesh/trust", "clustermesh/gossip/member", "clustermesh/gossip/observe",
	}, Tests: []string{"clustermesh/authority/fake"}},
	{Path: "clustermesh/gossip", Imports: []string{
		"clustermesh", "clustermesh/authority", "clustermesh/replica", "clustermesh/topology", "clustermesh/trust", "clustermesh/gossip/member", "clustermesh/gossip/meter", "clustermesh/gossip/node", "clustermesh/gossip/observe",
		"clustermesh/gossip/pool", "clustermesh/gossip/stream", "clustermesh/gossip/probe", "clustermesh/gossip/statedir", "clustermesh/gossip/statelog",
	}, Tests: []string{"clustermesh/authority/fake"}},
	{
		Path: "clustermesh/kube/writer", Imports: []string{"clustermesh", "clustermesh/object", "clustermesh/mcs", "clustermesh/kube/write", "clustermesh/written"},
		Tests: []string{"test/kubelab/apiserver"},
	},
	{Path: "clustermesh/policy", Pure: true, Imports: []string{"api/v1alpha1", "clustermesh"}},
	// Its tests ask whether a record can carry what it says.
	{Path: "clustermesh/policy/mirror", Pure: true, Imports: []string{"clustermesh", "clustermesh/object", "clustermesh/policy", "internal/tld", "clustermesh/written"}, Tests: []string{"clustermesh/replica"}},
	// Writes at API servers of clusters without strait.
	{Path: "replicate", Imports: []string{"clustermesh/policy", "clustermesh/policy/mirror", "clustermesh/kube/builtin", "clustermesh/kube/write", "clustermesh/written"}},
	{
		Path: "clustermesh/kube/mirrorer", Imports: []string{"clustermesh", "clustermesh/object", "clustermesh/policy", "clustermesh/policy/mirror", "clustermesh/kube/write", "clustermesh/written"},
		Tests: []string{"test/kubelab/apiserver"},
	},
	// What networking.gke.io asks for, and who writes it.
	{Path: "clustermesh/gke", Pure: true, Imports: []string{"clustermesh", "clustermesh/object", "clustermesh/policy", "clustermesh/written"}},
	{Path: "clustermesh/kube/gkewriter", Imports: []string{"clustermesh", "clustermesh/gke", "clustermesh/kube/write", "clustermesh/object", "clustermesh/written"}},
	{Path: "clustermesh/manifest", Imports: []string{"clustermesh", "clustermesh/object", "clustermesh/policy"}},
	// Its tests, like the writer's, need a real API server: a fake does not know what the real one
	// refuses or forgets.
	{Path: "clustermesh/kube", Imports: []string{"clustermesh", "clustermesh/kube/builtin", "clustermesh/object", "clustermesh/policy", "clustermesh/record", "clustermesh/written", "internal/coredns"}, Tests: []string{"test/kubelab/apiserver"}},

	// Packages that know the kernel. They never know Kubernetes or gossip.
	{Path: "datapath", Pure: true},
	// The balancer. layout is what its programs and all other packages share. Packages that only
	// read the maps, or opt cgroups out, need no loader.
	{Path: "datapath/socklb/layout", Imports: []string{"datapath"}},
	{Path: "datapath/socklb/cgroup"},
	{Path: "datapath/socklb/optout", Imports: []string{"datapath/socklb/cgroup", "datapath/socklb/layout"}},
	{Path: "datapath/socklb/inspect", Imports: []string{"datapath", "datapath/socklb/cgroup", "datapath/socklb/layout"}},
	{Path: "datapath/socklb", Imports: []string{
		"datapath", "datapath/socklb/cgroup", "datapath/socklb/inspect", "datapath/socklb/layout", "datapath/socklb/optout",
	}},
	// Its tests destroy real clients' sockets, and find them by what the real balancer recorded.
	{Path: "datapath/sockdestroy", Imports: []string{"datapath"}, Tests: []string{"datapath/socklb", "datapath/socklb/inspect"}},
	// Its tests use the real route.Router as its Links.
	{Path: "datapath/wireguard", Imports: []string{"datapath"}, Tests: []string{"datapath/route"}},
	{Path: "datapath/route", Imports: []string{"datapath"}},
	{Path: "datapath/netfilter", Imports: []string{"datapath"}},
	// Probes in the tunnels, and what they mean.
	{Path: "datapath/ping"},
	{Path: "datapath/tunnelhealth", Pure: true},

	// The bridge between the two halves, and the packages that run it.
	{Path: "daemon/plan", Pure: true, Imports: []string{"clustermesh", "clustermesh/locality", "clustermesh/topology", "daemon/plan/mesh", "datapath"}, Tests: []string{"clustermesh/record"}},
	{Path: "daemon/reconcile"},
	{Path: "daemon/watch"},
	{Path: "daemon/objects", Pure: true, Imports: []string{"clustermesh", "clustermesh/locality", "clustermesh/mcs", "daemon/plan"}},
	{Path: "daemon/trustlevel", Pure: true, Imports: []string{"clustermesh", "clustermesh/authority", "daemon/plan"}},
	{Path: "daemon/identity", Pure: true, Imports: []string{"clustermesh", "clustermesh/object"}},
	{Path: "daemon/canary", Pure: true, Imports: []string{"clustermesh"}},
	{Path: "daemon/health", Pure: true, Imports: []string{"clustermesh", "daemon/plan", "datapath/tunnelhealth"}, Tests: []string{"daemon/plan/mesh", "datapath"}},
	// The tunnels. It does not know which endpoints services use.
	{Path: "daemon/plan/mesh", Pure: true, Imports: []string{"clustermesh", "clustermesh/topology", "datapath"}},
	{Path: "daemon/lend"}, // the daemon reads what a pod of the node lends
	{Path: "daemon/turn", Pure: true, Imports: []string{"clustermesh", "daemon/plan"}},
	{Path: "daemon/api", Pure: true, Imports: []string{"datapath"}},
	// The columns of every list that people see.
	// What changed and why, and what plans were made from: for people who ask later. ring keeps it in files.
	// Keeps the last lines of the daemon's log. It is a handler of slog.
	{Path: "daemon/logring", Imports: []string{"daemon/api"}},
	{Path: "daemon/history", Pure: true, Imports: []string{"clustermesh", "daemon/api", "daemon/plan", "datapath"}},
	{Path: "daemon/history/ring", Imports: []string{"clustermesh/gossip/statelog", "daemon/api", "daemon/history"}, Tests: []string{"clustermesh", "daemon/plan"}},
	{Path: "daemon/api/table", Pure: true, Imports: []string{"daemon/api"}},
	{Path: "daemon/api/client", Imports: []string{"daemon/api"}},
	// Answers in a file, for people who look later.
	{Path: "daemon/api/support", Imports: []string{"daemon/api", "daemon/api/client"}},
	{Path: "daemon/api/server", Imports: []string{"daemon/api"}, Tests: []string{"daemon/api/client", "daemon/api/fake"}},
	// It passes on what a server answers, and links nothing of the daemon.
	{Path: "daemon/api/relay", Imports: []string{"daemon/api"}, Tests: []string{"daemon/api/fake", "daemon/api/server"}},
	{Path: "daemon/api/fake", Imports: []string{"daemon/api", "datapath"}},
	{Path: "daemon/metrics", Imports: []string{"daemon/api"}, Tests: []string{"daemon/api/fake"}},
	{Path: "daemon/clusterdns", Pure: true, Imports: []string{"clustermesh", "internal/coredns"}},
	{Path: "daemon/dns", Imports: []string{"clustermesh", "daemon/clusterdns", "internal/tld"}},
	// Its benchmark starts at a record's bytes, its tests of policies at objects, those of answers at a
	// topology.
	{Path: "daemon", Imports: []string{
		"clustermesh", "clustermesh/authority", "clustermesh/locality", "clustermesh/mcs", "clustermesh/gossip", "clustermesh/manifest",
		"clustermesh/gke", "clustermesh/kube", "clustermesh/kube/gkewriter", "clustermesh/kube/write", "clustermesh/kube/writer", "clustermesh/kube/mirrorer", "clustermesh/policy", "clustermesh/policy/mirror",
		"datapath", "datapath/socklb", "datapath/socklb/cgroup", "datapath/socklb/inspect", "datapath/sockdestroy", "datapath/wireguard", "datapath/route", "datapath/netfilter", "datapath/ping", "datapath/tunnelhealth",
		"daemon/plan", "daemon/turn", "daemon/reconcile", "daemon/api", "daemon/api/server", "daemon/metrics", "daemon/clusterdns", "daemon/dns", "daemon/lend", "daemon/watch", "daemon/canary", "daemon/health", "daemon/history", "daemon/history/ring", "daemon/identity", "daemon/logring", "daemon/trustlevel", "daemon/objects", "internal/coredns",
	}, Tests: []string{"clustermesh/record", "clustermesh/replica", "clustermesh/object", "clustermesh/topology", "clustermesh/written", "daemon/api/client", "daemon/api/table"}},

	// The pages of docs that programs show.
	{Path: "docs", Pure: true},
	// Makes the documentation site of the pages, with Hugo, which is not linked into anything of
	// strait.
	{Path: "docs/site/plan", Pure: true},
	{Path: "docs/site/deadlinks", Pure: true},
	{Path: "docs/site", Imports: []string{"docs/site/plan", "docs/site/deadlinks", "test/pages"}},

	{Path: "cmd/straitd", Imports: []string{"daemon", "daemon/api/relay", "daemon/lend"}},
	// The page of strait ui, and who makes it from its source. The maker is not linked into strait.
	{Path: "web"},
	{Path: "web/build"},
	// Serves a page to one person. It does not know what the page shows.
	{Path: "cli/ui"},
	// What the commands of strait have in common, and its groups of commands, which do not know each other.
	{Path: "cli", Imports: []string{"daemon/api", "daemon/api/client", "daemon/api/support", "daemon/api/table"}},
	{Path: "cli/check", Pure: true, Imports: []string{"daemon/api", "datapath", "internal/problem", "internal/version"}},
	{Path: "cli/checklist", Imports: []string{"cli", "cli/check", "daemon/api"}},
	{Path: "cli/node", Imports: []string{"cli", "cli/check", "cli/checklist", "cli/ui", "web", "daemon/api", "daemon/api/client", "daemon/api/support", "daemon/api/table", "datapath", "clustermesh", "clustermesh/authority"},
		Tests: []string{"daemon/api/fake", "daemon/api/server"}},
	// Like the demo, it also reads the pinned maps: the daemon can be dead.
	{Path: "cli/kernel", Imports: []string{"cli", "daemon/api", "daemon/api/client", "daemon/api/table", "datapath/socklb/inspect", "datapath/socklb/optout"}},
	{Path: "cli/fleet", Imports: []string{
		"cli", "cli/check", "cli/checklist", "cli/connectivity", "cli/connectivity/agent", "daemon/api", "daemon/api/client", "clustermesh", "clustermesh/authority",
		"install/bundle", "install/chart", "install/cluster", "install/corefile", "install/preflight", "install/standalone", "install/trust", "install/vault",
		"clustermesh/policy", "clustermesh/policy/mirror", "clustermesh/written", "replicate", "internal/coredns",
	}},
	// What strait connectivity test tries, and what failures mean; and what runs in its pods.
	{Path: "cli/connectivity", Pure: true, Imports: []string{"daemon/api"}},
	{Path: "cli/connectivity/agent", Imports: []string{"cli/connectivity"}},
	{
		Path: "cmd/strait", Imports: []string{"cli", "cli/fleet", "cli/kernel", "cli/node", "daemon/api", "demo", "docs"},
		Tests: []string{"clustermesh/authority", "datapath", "datapath/socklb", "datapath/socklb/inspect", "daemon/api/client", "daemon/api/fake", "daemon/api/server"},
	},

	// It asks the daemons and also reads the maps that they pinned: a daemon can be dead.
	{Path: "demo", Imports: []string{
		"demo/lab", "demo/traffic", "daemon/api", "daemon/api/client", "install/examples", "datapath", "datapath/socklb/inspect",
		"clustermesh", "clustermesh/authority", "install/bundle", "install/standalone",
	}},
	{Path: "demo/lab", Imports: []string{"internal/fabric"}},
	{Path: "demo/traffic"},
	{Path: "install/examples", Tests: []string{"clustermesh", "clustermesh/authority", "clustermesh/manifest", "install/chart"}},
	// How strait is installed in clusters. These packages know only the daemon's API, and what to
	// remove. The chart's tests compare what its admission policy bars with what the daemon bars, and
	// its ClusterRoles with what the daemon reads and writes.
	{Path: "install/chart", Tests: []string{"clustermesh", "clustermesh/object", "clustermesh/written", "daemon/api"}},
	{Path: "install/cluster", Imports: []string{"clustermesh/written", "install/bundle", "daemon/api", "daemon/api/client", "internal/coredns", "internal/ovn"}},
	{Path: "install/bundle", Pure: true},
	{Path: "install/standalone", Pure: true, Imports: []string{"clustermesh", "clustermesh/authority", "install/bundle"}},
	{Path: "install/trust", Pure: true, Imports: []string{"clustermesh", "clustermesh/authority", "install/bundle"}},
	// Replaces keys and withdraws them, over vaults that cli/fleet opens.
	{Path: "install/vault", Imports: []string{"clustermesh", "clustermesh/authority", "daemon/api"}},
	{Path: "install/corefile", Pure: true},
	{Path: "install/preflight", Pure: true, Imports: []string{"internal/ovn"}},

	// Makes the dashboards of the chart. It is not linked into strait.
	{Path: "install/dashboards"},
	{Path: "install/image", Imports: []string{"install/image/oci"}},
	{Path: "install/image/oci"},
	{Path: "install/image/bom", Pure: true},
	{Path: "install/image/sbom", Imports: []string{"install/image/bom", "install/image/oci"}},
	{Path: "install/image/push", Imports: []string{"install/image/oci"}},
	// What a release consists of, and what writes it.
	{Path: "install/release", Pure: true},
	{Path: "install/release/dist", Imports: []string{"install/chart", "install/image/bom", "install/image/oci", "install/release"}},

	{Path: "test/arch"},
	// Runs many nodes of gossip, as straitd does, in virtual time. Pure, so that nothing in it waits.
	{Path: "test/sim", Pure: true, Imports: []string{
		"clustermesh", "clustermesh/authority", "clustermesh/replica", "clustermesh/topology", "clustermesh/trust", "clustermesh/gossip/member", "clustermesh/gossip/node", "clustermesh/gossip/observe",
	}},
	// It goes the way of what attackers say, from objects and records to plans and writes.
	{Path: "test/hostile", Imports: []string{
		"clustermesh", "clustermesh/authority", "clustermesh/gossip/member", "clustermesh/mcs", "clustermesh/record", "clustermesh/replica", "clustermesh/written", "daemon/plan", "datapath",
	}},
	{Path: "test/bench", Imports: []string{
		"clustermesh", "clustermesh/authority", "clustermesh/replica", "daemon/plan",
		"datapath", "datapath/socklb", "datapath/socklb/inspect", "datapath/socklb/layout", "test/bench/cilium", "test/bench/failover", "test/bench/ipvs", "test/bench/kubeproxy", "test/bench/replication", "test/bench/scale", "test/bench/stats", "test/hostile", "test/kubelab", "test/kubelab/programs",
	}},
	{Path: "test/bench/replication", Imports: []string{"clustermesh", "clustermesh/gossip", "internal/gossipkey", "test/sim"}}, // measures how records travel
	// Measures the clusterset of strait demo, from outside.
	{Path: "test/bench/failover", Imports: []string{"daemon/api", "daemon/api/client", "datapath", "datapath/socklb/inspect", "demo/lab", "demo/traffic"}},
	// Measures against a real API server. It speaks gossip for the nodes that do not exist.
	{Path: "test/bench/scale", Imports: []string{
		"clustermesh", "clustermesh/gossip", "clustermesh/gossip/stream", "clustermesh/replica", "datapath/socklb/inspect", "internal/fabric", "test/kubelab",
	}, Tests: []string{"test/kubelab/apiserver"}},
	// Cilium's own balancer, to compare with. It shares no code with strait's.
	{Path: "test/bench/cilium", Imports: []string{"datapath"}},
	{Path: "test/bench/ipvs", Imports: []string{"datapath"}},
	{Path: "test/bench/kubeproxy", Pure: true, Imports: []string{"datapath"}},
	{Path: "test/bench/stats", Pure: true},
	// The commands of the pages, for the tests that execute them.
	{Path: "test/pages", Pure: true},
	{Path: "test/report"},
	// Builds strait as a user does; it knows the Makefile, and nothing of the code.
	{Path: "test/supply", Tests: []string{"test/pages"}},
	// Looks at the page of strait ui, and at the documentation site, in a browser.
	{Path: "test/web", Tests: []string{"docs", "daemon/api", "daemon/api/client", "daemon/api/fake", "daemon/api/server"}},
	{Path: "test/alerts"}, // Prometheus with the chart's alerts, for tests of what fires
	{Path: "test/many", Tests: []string{"clustermesh", "clustermesh/authority", "daemon/api", "daemon/api/client", "internal/fabric"}},
	// Looks at the metrics with a real Prometheus, and asks daemons as the CLI does.
	{Path: "test/monitoring", Tests: []string{"daemon/api", "daemon/api/client", "demo/lab", "test/alerts"}},
	{Path: "test/e2e", Tests: []string{"test/pages", "internal/fabric"}},
	// Its tests run the daemon with the rights that the chart gives it.
	{Path: "test/faults", Tests: []string{"clustermesh", "clustermesh/authority", "clustermesh/gossip/statelog", "daemon/api", "daemon/api/client", "datapath", "datapath/socklb/inspect", "datapath/socklb/layout", "datapath/socklb/optout", "install/chart"}},
	// It attacks with the packages that daemons speak gossip with.
	{Path: "test/redteam", Tests: []string{
		"clustermesh", "clustermesh/authority", "clustermesh/gossip", "clustermesh/gossip/stream", "clustermesh/replica",
		"clustermesh/replica/splice", "daemon/api", "daemon/api/client", "datapath/socklb/inspect", "test/pages",
	}},
	{Path: "test/locality", Tests: []string{"daemon/api", "daemon/api/client", "datapath", "datapath/socklb/inspect", "internal/fabric"}},
	{Path: "test/install", Tests: []string{"test/kubelab/apiserver", "test/pages"}},
	{Path: "test/leader", Tests: []string{"clustermesh", "clustermesh/authority", "clustermesh/object", "daemon/api", "test/kubelab", "test/kubelab/apiserver"}},
	// Standalone packages and programs that know nothing of strait.
	{Path: "test/clients", Tests: []string{"datapath", "datapath/socklb"}},
	{Path: "test/vm/initrd", Pure: true},
	{Path: "test/vm/job", Pure: true},
	{Path: "test/vm/result", Pure: true},
	{Path: "test/vm/kernels", Imports: []string{"test/vm/initrd"}},
	{Path: "test/vm/guest", Imports: []string{"test/vm/job"}},
	{Path: "test/vm/run", Imports: []string{"test/vm/initrd", "test/vm/job", "test/vm/kernels", "test/vm/result"}},
	{Path: "test/vm/verify"},
	// Kubernetes clusters to run strait in. They know only how a user installs it.
	{Path: "test/kubelab", Imports: []string{"internal/fabric", "install/image/oci", "test/kubelab/machine", "test/kubelab/programs"}, Tests: []string{"internal/testutil"}},
	{Path: "test/kubelab/machine", Pure: true},
	{Path: "test/kubelab/init", Imports: []string{"test/kubelab/machine"}},
	{Path: "test/kubelab/forward"},
	{Path: "test/kubelab/programs"},
	{Path: "test/kubelab/apiserver", Imports: []string{"internal/testutil", "test/kubelab", "test/kubelab/programs"}},
	{Path: "test/kubelab/run", Imports: []string{"test/kubelab", "test/kubelab/programs"}},
	{Path: "test/kube/serve"},
	{Path: "test/cni", Tests: []string{"daemon/api", "test/kubelab", "test/kubelab/apiserver"}},
	{Path: "test/kube", Tests: []string{"clustermesh/authority", "daemon/api", "install/chart", "install/image/oci", "test/alerts", "test/pages", "test/kubelab", "test/kubelab/apiserver"}},
	{Path: "test/script", Tests: []string{
		"clustermesh", "clustermesh/manifest", "clustermesh/replica", "clustermesh/topology", "datapath", "datapath/socklb", "datapath/socklb/inspect", "datapath/socklb/optout", "daemon/plan", "daemon/turn", "internal/l4",
	}},
}

// Dependency is a third-party import path, including the paths below it, and the packages that own
// it.
type Dependency struct {
	Path string
	// Owners are the packages that may import it. If there are several, Why must say why one owner
	// is not enough.
	Owners []string
	Why    string
	// Tests are additional packages that may import it only in their tests.
	Tests []string
	// Test is set if every test, and no other file, may import it.
	Test bool
}

// Dependencies lists every third-party import of the module.
var Dependencies = []Dependency{
	{
		Path: "github.com/cilium/ebpf",
		Owners: []string{
			"datapath/socklb", "datapath/socklb/layout", "datapath/socklb/cgroup", "datapath/socklb/optout", "datapath/socklb/inspect",
			"datapath/sockdestroy", "test/bench", "test/bench/cilium", "test/bench/scale",
		},
		Tests: []string{"test/vm/verify", "test/kube", "test/faults"},
		Why: "socklb loads programs; packages below it open its maps without a loader, and cgroup asks the kernel for this process's cgroups; " +
			"sockdestroy's programs need a newer kernel than socklb's, so they have their own object and loader; " +
			"bench reads what programs and maps cost, and attaches programs to compare with; cilium loads those of Cilium; scale counts straitd's requests to the kernel",
	},
	{Path: "github.com/fxamacker/cbor/v2", Owners: []string{"clustermesh/authority", "clustermesh/replica", "daemon/history"},
		Why: "the bytes of a record are signed, and those of a statement: each package reads and writes its own; a history also has what a node itself finds of records"},
	{Path: "github.com/DataDog/datadog-agent/pkg/template/text", Owners: []string{"install/chart", "install/examples"},
		Why: "text/template without calls of methods, which make the linker keep every method of every type; each package renders its own templates"},
	{Path: "filippo.io/edwards25519", Owners: []string{"internal/key"}},
	{Path: "github.com/KimMachineGun/automemlimit", Owners: []string{"cmd/straitd"}},
	{Path: "github.com/cespare/xxhash/v2", Owners: []string{"clustermesh/topology"}, Why: "a hash that stays the same, and ranks thousands of nodes quickly"},
	{Path: "github.com/fsnotify/fsnotify", Owners: []string{"clustermesh/manifest"}},
	{Path: "github.com/google/nftables", Owners: []string{"datapath/netfilter"}},
	{Path: "github.com/google/uuid", Owners: []string{"clustermesh/kube/writer"}},
	{Path: "github.com/hashicorp/go-msgpack", Owners: []string{"clustermesh/gossip/pool"}}, // tests: what memberlist reads
	{Path: "github.com/hashicorp/memberlist", Owners: []string{"clustermesh/gossip/pool"}},
	{Path: "github.com/miekg/dns", Owners: []string{"daemon/dns"}, Tests: []string{"test/clients"}},
	{Path: "github.com/grafana/grafana-foundation-sdk/go", Owners: []string{"install/dashboards"}},
	{Path: "github.com/evanw/esbuild", Owners: []string{"web/build"}},
	{Path: "golang.org/x/time", Owners: []string{"clustermesh/gossip", "clustermesh/gossip/pool"}, Why: "rates of peers: what they send, and what they ask of the API server"},
	{Path: "golang.org/x/net/publicsuffix", Owners: []string{"internal/tld"}, Why: "the list of top-level domains, which changes each month"},
	{Path: "golang.org/x/mod/modfile", Owners: []string{"test/kubelab/programs"}},
	{Path: "golang.org/x/mod/semver", Owners: []string{"internal/version", "docs/site/plan", "install/release"}, Why: "which versions of strait work together; which version of the documentation is the latest; what a release may be called"},
	{Path: "golang.org/x/net/html", Owners: []string{"docs/site/deadlinks"}, Why: "reads the links of the site that was built"},
	{Path: "aead.dev/minisign", Owners: []string{"install/release/dist"}},
	{
		Path: "github.com/google/go-containerregistry", Owners: []string{"install/image/oci", "install/image/push", "install/release/dist"},
		Tests: []string{"test/kube", "test/supply"},
		Why:   "oci builds images and layouts, dist hands them on, and push sends them to registries, which oci must not know",
	},
	{Path: "github.com/prometheus/client_golang", Owners: []string{"daemon/metrics"}},
	{Path: "go4.org/netipx", Owners: []string{"datapath/netfilter"}},
	{Path: "golang.zx2c4.com/wireguard", Owners: []string{"datapath/wireguard"}},

	{
		Path:   "k8s.io/api",
		Owners: []string{"clustermesh/object", "clustermesh/written", "clustermesh/mcs", "clustermesh/gke", "clustermesh/policy/mirror", "clustermesh/kube", "clustermesh/kube/builtin", "clustermesh/kube/writer", "clustermesh/kube/mirrorer", "clustermesh/kube/gkewriter", "replicate", "install/cluster", "test/bench/scale"},
		Tests:  []string{"clustermesh/kube/write", "daemon", "install/chart", "test/faults", "test/kube", "test/leader"},
		Why: "object lists the kinds that are read and says what they mean, mcs and mirror decide which objects should exist, " +
			"writer and replicate write them; kube asks about tokens; install/cluster reads DaemonSets and pods; scale writes the objects of the cluster that it measures; " +
			"the chart's tests, and those of faults, read what the chart renders; daemon's tests of policies go from objects to objects",
	},
	{
		Path:   "sigs.k8s.io/mcs-api",
		Owners: []string{"clustermesh/object", "clustermesh/mcs", "clustermesh/kube/writer", "test/kubelab", "test/bench/scale", "test/hostile"},
		Tests:  []string{"clustermesh/kube", "clustermesh/written", "install/chart", "test/kube", "test/leader"},
		Why:    "same as k8s.io/api; also, kubelab installs its CRDs, and the chart's tests compare the chart's CRDs with them",
	},
	{
		Path: "k8s.io/apimachinery",
		Owners: []string{"api/v1alpha1", "api/client/fake", "api/client/scheme", "api/client/typed/api/v1alpha1",
			"clustermesh/object", "clustermesh/written", "clustermesh/manifest", "clustermesh/kube", "clustermesh/mcs", "clustermesh/policy", "clustermesh/gke", "clustermesh/policy/mirror", "clustermesh/kube/builtin", "clustermesh/kube/write", "clustermesh/kube/writer", "clustermesh/kube/mirrorer", "clustermesh/kube/gkewriter", "replicate", "install/cluster", "test/bench/scale", "test/hostile"},
		Tests: []string{"daemon", "install/chart", "test/install", "test/kube"},
		Why:   "needed with k8s.io/api; manifest decodes files and kube decodes API servers' answers into the types that object lists",
	},
	{
		Path:   "k8s.io/apimachinery/pkg/util/validation",
		Owners: []string{"clustermesh/object", "clustermesh/mcs", "clustermesh/policy", "clustermesh/policy/mirror", "replicate", "cli/fleet", "daemon", "daemon/identity"},
		Why:    "names in objects and in the configuration must obey Kubernetes' own rules, which are pure functions",
	},
	{Path: "k8s.io/apimachinery/pkg/util/version", Owners: []string{"install/preflight"}, Why: "compares versions of kernels and images as Kubernetes does"},
	{
		Path: "k8s.io/client-go",
		Owners: []string{"api/client", "api/client/fake", "api/client/typed/api/v1alpha1", "api/client/typed/api/v1alpha1/fake",
			"clustermesh/kube", "clustermesh/kube/builtin", "clustermesh/kube/write", "clustermesh/kube/writer", "clustermesh/kube/mirrorer", "clustermesh/kube/gkewriter", "replicate", "install/cluster", "test/bench/scale"},
		Tests: []string{"test/install", "test/kube"},
		Why:   "kube reads from API servers, writer writes to them, replicate and install/cluster do both for the CLI, scale for the cluster that it measures; api has clients for programs of others",
	},
	{Path: "k8s.io/utils/ptr", Owners: []string{"clustermesh/kube"}, Why: "the fields of Leases are pointers"},
	{Path: "k8s.io/klog/v2", Owners: []string{"clustermesh/kube", "clustermesh/kube/write", "replicate"}, Why: "client-go logs through it"},
	{Path: "github.com/go-logr/logr", Owners: []string{"clustermesh/kube", "clustermesh/kube/write", "replicate"}, Why: "client-go logs through it"},
	{Path: "k8s.io/client-go/util/jsonpath", Owners: []string{"cli"}, Why: "templates of --output, as kubectl reads them; it needs nothing else of client-go"},
	{Path: "k8s.io/client-go/tools/clientcmd", Owners: []string{"cli", "clustermesh/kube", "replicate", "install/cluster", "test/bench/scale"}, Tests: []string{"clustermesh/kube/mirrorer", "clustermesh/kube/writer", "test/install", "test/kube"}, Why: "kubectl's flags and kubeconfig files"},
	{Path: "helm.sh/helm/v4", Tests: []string{"install/chart", "test/kube"}},
	{Path: "k8s.io/streaming", Owners: []string{"install/cluster"}},
	{Path: "github.com/spf13/pflag", Owners: []string{"cli"}, Why: "client-go declares kubectl's flags with it"},
	{
		Path:   "github.com/spf13/cobra",
		Owners: []string{"cmd/straitd", "cmd/strait", "cli", "cli/node", "cli/kernel", "cli/fleet", "demo"},
		Why:    "each package declares the commands that it runs",
	},
	{
		Path:   "github.com/vishvananda/netlink",
		Owners: []string{"datapath/route", "demo/lab", "internal/fabric", "internal/testutil", "test/bench", "test/bench/ipvs", "test/kubelab"},
		Tests:  []string{"cli/connectivity/agent", "datapath/wireguard", "datapath/netfilter", "test/clients", "test/faults", "test/kube", "test/many"},
		Why:    "in the daemon only route uses it; the labs, fabric, testutil, bench and tests build networks with it; ipvs speaks to IPVS with it",
	},
	{
		Path:   "github.com/vishvananda/netns",
		Owners: []string{"internal/fabric", "internal/testutil", "test/bench"},
		Why:    "fabric, testutil and bench make network namespaces; the daemon stays in the one that it is started in",
	},
	{
		Path: "golang.org/x/sys/unix",
		Owners: []string{
			"datapath/socklb", "datapath/socklb/layout", "datapath/socklb/cgroup", "datapath/socklb/optout", "datapath/socklb/inspect",
			"datapath/sockdestroy", "datapath/wireguard", "datapath/route", "datapath/netfilter", "datapath/ping", "clustermesh/gossip/stream",
			"cli/connectivity/agent", "demo/lab", "internal/fabric", "internal/testutil", "test/bench", "test/bench/cilium", "test/bench/ipvs", "test/bench/scale", "test/kubelab/init", "test/vm/guest", "test/vm/kernels",
		},
		Tests: []string{"test/clients", "test/faults", "test/kube", "test/locality"},
		Why:   "system calls that package syscall lacks; practically part of the standard library",
	},
	{
		Path:   "golang.org/x/sync",
		Owners: []string{"clustermesh/kube/write", "daemon", "datapath/socklb", "demo", "demo/traffic", "install/cluster", "replicate", "test/bench/failover", "test/bench/scale", "test/kubelab", "test/vm/run"},
		Why:    "errgroup, to start goroutines and wait for them; practically part of the standard library",
	},
	{
		Path:   "golang.org/x/term",
		Owners: []string{"cmd/strait", "demo"},
		Why:    "both check whether their output is a terminal",
	},
	{
		Path:   "sigs.k8s.io/yaml",
		Owners: []string{"daemon", "clustermesh/authority", "clustermesh/manifest", "clustermesh/policy", "replicate", "cli", "cli/fleet", "cli/node", "cmd/strait", "demo", "install/chart", "install/cluster", "install/release", "install/trust", "test/alerts"},
		Tests:  []string{"clustermesh/gke", "clustermesh/kube", "install/examples", "test/faults", "test/kube", "test/monitoring", "test/supply"},
		Why:    "an encoding, used wherever YAML is read or written, so that all of it behaves the same",
	},

	{Path: "go.yaml.in/yaml/v3", Tests: []string{"install/chart"}}, // the comments of values.yaml
	{Path: "github.com/chromedp", Tests: []string{"test/web"}},
	{Path: "golang.org/x/tools/go/packages", Tests: []string{"test/arch"}},
	{Path: "pgregory.net/rapid", Test: true},
	{Path: "github.com/rogpeppe/go-internal/testscript", Test: true},
}

// MaxLines is the most lines that a hand-written file may have. Long lists the exceptions.
const MaxLines = 500

// Long maps a file above MaxLines to the reason why it is not split.
var Long = map[string]string{}

// MaxFunction is the most lines that a function outside tests may have: what fits on a screen.
const MaxFunction = 60

// badNames are folder and package names that say nothing about the contents, so that anything ends
// up there.
var badNames = []string{"util", "utils", "common", "helper", "helpers", "types", "manager", "pkg", "misc", "shared"}

// AllowedPort is a file or folder of tests with numbers of the ephemeral range that no outgoing connection
// can be in the way of.
type AllowedPort struct {
	Path  string
	Ports []int
	Why   string
}

// Ports lists them.
var Ports = []AllowedPort{
	{"clustermesh", []int{51820}, "WireGuard's port in records and pins; nothing binds it"},
	{"daemon", []int{51820, 51821}, "WireGuard's port in records and plans; turn_linux_test.go has peers with it, and a namespace that reserves it"},
	{"cmd/strait", []int{51820, 51821}, "WireGuard's port in answers; nothing binds it"},
	{"cmd/strait", []int{32768, 52429}, "a weight, and the fill of a map"},
	{"install", []int{51820, 51821}, "WireGuard's port in rendered settings and answers; nothing binds it"},
	{"datapath/wireguard", []int{51820}, "bound in namespaces of testutil, which reserve it"},
	{"datapath/socklb/claim_linux_test.go", []int{40000}, "a count"},
	{"demo/config.go", []int{51820}, "bound in namespaces of fabric, which reserve it"},
	{"internal/fabric", []int{51820}, "reserves it"},
	{"internal/testutil", []int{51820}, "reserves it"},
	{"test", []int{51820}, "WireGuard's port in records, or bound in namespaces of testutil and fabric, which reserve it"},
	{"test/kube/testdata/multiclusterservice-crd.yaml", []int{32768}, "the length of a message"},
	{"test/kubelab/config/mcs-v0.1.0.yaml", []int{32768}, "the length of a message"},
	{"test/redteam/strangers_linux_test.go", []int{50000}, "microseconds"},
	{"clustermesh/gossip/replay_linux_test.go", []int{50000}, "microseconds"},
}
