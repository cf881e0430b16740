package cilium

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// defines are the macros that WriteNodeConfig (pkg/datapath/linux/config) writes to node_config.h
// and that bpf_sock.c and what it includes refer to: kube-proxy replacement, IPv4, and otherwise the
// defaults of Cilium's Helm chart. Only tracing is an option, because it costs something on each
// connect().
var defines = map[string]any{
	"ENABLE_IPV4": 1, "ENABLE_NODEPORT": 1, "ENABLE_SOCKET_LB_FULL": 1, "ENABLE_SOCKET_LB_PEER": 1,
	"SERVICE_NO_BACKEND_RESPONSE": 1, "TUNNEL_MODE": 1, "DSR_ENCAP_MODE": 0,
	"CILIUM_IPV4_FRAG_MAP_MAX_ENTRIES": 8192, "CILIUM_IPV6_FRAG_MAP_MAX_ENTRIES": 8192,
	"CILIUM_LB_SERVICE_MAP_MAX_ENTRIES": 65536, "CILIUM_LB_BACKENDS_MAP_MAX_ENTRIES": 65536,
	"CILIUM_LB_REV_NAT_MAP_MAX_ENTRIES": 65536, "CILIUM_LB_AFFINITY_MAP_MAX_ENTRIES": 65536,
	"CILIUM_LB_SOURCE_RANGE_MAP_MAX_ENTRIES": 65536, "CILIUM_LB_MAGLEV_MAP_MAX_ENTRIES": 65536,
	"CILIUM_LB_SKIP_MAP_MAX_ENTRIES": 100, "LB_MAGLEV_LUT_SIZE": 16381,
	"LB4_SRC_RANGE_MAP_SIZE": 65536, "LB6_SRC_RANGE_MAP_SIZE": 65536,
	"LB4_REVERSE_NAT_SK_MAP_SIZE": Sockets, "LB6_REVERSE_NAT_SK_MAP_SIZE": Sockets,
	"ENDPOINTS_MAP_SIZE": 65535, "METRICS_MAP_SIZE": 1024, "IPCACHE_MAP_SIZE": 512000,
	"CT_CONNECTION_LIFETIME_TCP": 8000, "CT_CONNECTION_LIFETIME_NONTCP": 60,
	"CT_SERVICE_LIFETIME_TCP": 8000, "CT_SERVICE_LIFETIME_NONTCP": 60, "CT_SERVICE_CLOSE_REBALANCE": 60,
	"CT_SYN_TIMEOUT": 60, "CT_CLOSE_TIMEOUT": 10, "CT_REPORT_INTERVAL": 5, "CT_REPORT_FLAGS": "0x0007",
	"CT_MAP_SIZE_TCP": 524288, "CT_MAP_SIZE_ANY": 262144,
}

// nodeConfig returns node_config.h. cookie is that of the network namespace of the agent, which is
// the host's.
func nodeConfig(cookie uint64, traced bool) string {
	all := maps.Clone(defines)
	all["HOST_NETNS_COOKIE"] = cookie
	if traced {
		all["TRACE_SOCK_NOTIFY"] = 1
	}
	var b strings.Builder
	b.WriteString("#include \"lib/utils.h\"\n\n")
	b.WriteString("DECLARE_CONFIG(__u32, interface_ifindex, \"ifindex of the interface the bpf program is attached to\");\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "#define %s %v\n", name, all[name])
	}
	return b.String()
}

// netdevConfig is netdev_config.h: the options that a running agent can change. 3 is the level of
// aggregation that Helm calls medium.
const netdevConfig = `#define DROP_NOTIFY 1
#define MONITOR_AGGREGATION 3
#define TRACE_NOTIFY 1
`
