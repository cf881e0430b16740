package plan

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// offer is a cluster whose endpoints may be used, and the ports of its own Service.
type offer struct {
	cluster clustermesh.ClusterName
	ports   []clustermesh.ServicePort
	routing *clustermesh.Routing
}

// merged is the merge of all clusters' exports, and the addresses allocated to it.
type merged struct {
	// What it was made from.
	said  map[clustermesh.ClusterName]said
	given []clustermesh.Allocation

	imports     []exported // sorted by service
	allocations []clustermesh.Allocation
	problems    []clustermesh.Problem
}

// said is what a cluster's record says of exports.
type said struct {
	exports    []clustermesh.Export
	late, seen []clustermesh.Late // as its leader says, and as this node has seen of its exports
	joined     int64
	quota      int // 0 for none
}

// exported is an import with its addresses and the clusters behind it.
type exported struct {
	*clustermesh.Import
	ips    []netip.Addr
	offers []offer
	// silent: no export lists its families, as those of older daemons.
	silent bool
}

// update merges again if any cluster's exports, or what is said of them, or this cluster's
// allocations have changed. It reports whether it did.
func (m *merged) update(s clustermesh.State, own clustermesh.ClusterName, c Config) bool {
	given := s.Records.Get(clustermesh.Origin{Cluster: own}).Content.Allocations
	now := map[clustermesh.ClusterName]said{}
	same := m.said != nil && datapath.SameList(given, m.given)
	for _, cluster := range s.Clusters() {
		r := s.Records.Get(clustermesh.Origin{Cluster: cluster})
		x, before := said{r.Content.Exports, r.Content.Late, r.Late, s.Joined[cluster], s.Quotas[cluster]}, m.said[cluster]
		now[cluster] = x
		same = same && x.joined == before.joined && x.quota == before.quota && datapath.SameList(x.exports, before.exports) && datapath.SameList(x.late, before.late) && datapath.SameList(x.seen, before.seen)
	}
	if same && len(now) == len(m.said) {
		return false
	}
	m.said, m.given, m.problems = now, given, s.OverQuota(own)
	all := s.Exports(own)
	m.bar(all, c.Barred)
	imports, problems := clustermesh.Imports(all)
	m.problems = append(m.problems, problems...)
	m.allocate(imports, c.CIDRs)
	m.take(imports, all, m.ips(c.CIDRs))
	return true
}

// bar drops the exports in namespaces that are barred here, whatever other clusters do.
func (m *merged) bar(exports map[clustermesh.ServiceName][]clustermesh.ClusterExport, barred clustermesh.Barred) {
	for s, es := range exports {
		why := barred.Why(s)
		if why == "" {
			continue
		}
		delete(exports, s)
		m.problems = append(m.problems, s.Ref("ServiceImport").Problem(clustermesh.Problem{
			Code:    problem.ImportBarred,
			Message: fmt.Sprintf("%s: not imported, though cluster %s exports it", why, es[0].Cluster),
			Try:     "use another namespace, or delete the ServiceExport there",
			Warning: true,
		}))
	}
}

// allocate determines which addresses the leader should allocate.
func (m *merged) allocate(imports []clustermesh.Import, cidrs []netip.Prefix) {
	if len(cidrs) == 0 {
		m.allocations = m.given
		return
	}
	var problems []clustermesh.Problem
	m.allocations, problems = clustermesh.Allocate(cidrs, m.given, imports)
	m.problems = append(m.problems, problems...)
}

// ips returns the addresses that the leader has allocated. Until then an import has none, because
// every node of a cluster must use the same.
func (m *merged) ips(cidrs []netip.Prefix) map[clustermesh.ServiceName][]netip.Addr {
	out := make(map[clustermesh.ServiceName][]netip.Addr, len(m.given))
	for _, a := range m.given {
		if len(cidrs) == 0 || slices.ContainsFunc(cidrs, func(c netip.Prefix) bool { return c.Contains(a.IP) }) {
			out[a.Service] = append(out[a.Service], a.IP)
		}
	}
	return out
}

// take replaces the imports. It keeps the old value of those in which nothing changed.
func (m *merged) take(imports []clustermesh.Import, exports map[clustermesh.ServiceName][]clustermesh.ClusterExport, ips map[clustermesh.ServiceName][]netip.Addr) {
	slices.SortFunc(imports, func(a, b clustermesh.Import) int { return a.Service.Compare(b.Service) })
	out := make([]exported, 0, len(imports))
	old := m.imports
	for _, i := range imports {
		now := exported{Import: &i, ips: ips[i.Service], silent: true}
		for _, e := range exports[i.Service] {
			now.offers = append(now.offers, offer{e.Cluster, e.Ports, e.Routing})
			now.silent = now.silent && len(e.Families) == 0
		}
		for len(old) > 0 && old[0].Service.Compare(i.Service) < 0 {
			old = old[1:]
		}
		if len(old) > 0 && reflect.DeepEqual(old[0], now) {
			now = old[0]
		}
		out = append(out, now)
	}
	m.imports = out
}
