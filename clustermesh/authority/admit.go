package authority

import (
	"cmp"
	"fmt"
	"net/netip"
	"path"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// Admit returns the part of a record that its origin may say, and a Problem for each reason why
// something is left out. Verify must have succeeded for the record. The record's own Problems, which
// say what could not be used, stay. Admit never changes its arguments.
//
// What a node says of its place (addresses, prefixes, locality, WireGuard key) must be in its
// statement, and the statement inside the pin. An endpoint has an address of its origin: one of the
// node's prefixes, or the node's own; an endpoint that names no node has one in the pinned pods or
// endpoints. No other cluster has an address of the receiver's, or shares a Service of a namespace that is
// not accepted, or configures one that does not accept its configuration.
// The receiver's own cluster is judged by the statements alone.
func Admit(self Self, pin Pin, s Statement, r clustermesh.Record) clustermesh.Record {
	a := &admission{self: self, pin: pin, statement: s, origin: r.Origin, foreign: r.Origin.Cluster != self.Cluster, quota: pin.Quota.WithDefaults()}
	c := &r.Content
	if c.Node != nil {
		c.Node = a.node(*c.Node)
		r.KeyProven = s.KeyProven
	}
	c.Endpoints = a.located(kept(c.Endpoints, a.endpoint))
	c.Exports = kept(c.Exports, func(e clustermesh.Export) bool { return a.accepts("ServiceExport", e.Service) })
	c.Globals = kept(c.Globals, func(g clustermesh.Global) bool { return a.accepts("global Service", g.Service) })
	c.Mirrors = a.clusterIPs(kept(c.Mirrors, func(e clustermesh.Export) bool { return a.accepts("mirrored Service", e.Service) }))
	a.config(&r)
	c.Endpoints = atMost(a, "endpoints", a.quota.Endpoints, c.Endpoints)
	a.shared(c)
	c.Nodes = atMost(a, "nodes", a.quota.Nodes, c.Nodes)
	r.Problems = slices.Concat(r.Problems, a.found())
	return r
}

// AdmitUnpinned is Admit where nothing is pinned: it leaves out what namespaces do not accept, and all
// configuration, which anybody who has the gossip key could have written.
func AdmitUnpinned(self Self, r clustermesh.Record) clustermesh.Record {
	if r.Origin.Cluster == self.Cluster {
		return r
	}
	self.ConfigFrom = nil
	a := &admission{self: self, pin: Pin{Namespaces: []string{"*"}}, origin: r.Origin, foreign: true}
	a.config(&r)
	if len(self.Accept) == 0 && self.LocalNamespaces.Equal(clustermesh.LocalNamespaces{}) {
		return r
	}
	c := &r.Content
	c.Endpoints = kept(c.Endpoints, func(e clustermesh.Endpoint) bool { return a.accepts("endpoint of Service", e.Service) })
	c.Exports = kept(c.Exports, func(e clustermesh.Export) bool { return a.accepts("ServiceExport", e.Service) })
	c.Globals = kept(c.Globals, func(g clustermesh.Global) bool { return a.accepts("global Service", g.Service) })
	c.Mirrors = kept(c.Mirrors, func(e clustermesh.Export) bool { return a.accepts("mirrored Service", e.Service) })
	r.Problems = slices.Concat(r.Problems, a.found())
	return r
}

// admission is one call of Admit.
type admission struct {
	self      Self
	pin       Pin
	statement Statement
	origin    clustermesh.Origin
	foreign   bool
	quota     Quota
	reasons   []reason
}

// reason collects what is left out for one reason. People see the first, and how many more there are.
type reason struct {
	key     string
	problem clustermesh.Problem
	more    int
}

// refuse records that something is left out, and returns false.
func (a *admission) refuse(key, object, field, message, try string) bool {
	i := slices.IndexFunc(a.reasons, func(r reason) bool { return r.key == key })
	if i >= 0 {
		a.reasons[i].more++
		return false
	}
	a.reasons = append(a.reasons, reason{key: key, problem: clustermesh.Problem{
		Code: problem.OutsideAuthority, Object: object, Field: field, Message: message, Try: try,
	}})
	return false
}

func (a *admission) found() (out []clustermesh.Problem) {
	for _, r := range a.reasons {
		p := r.problem
		p.Message += ": left out"
		if r.more > 0 {
			p.Message += fmt.Sprintf(", with %d more of %s for the same reason", r.more, a.origin)
		}
		out = append(out, p)
	}
	return out
}

// config leaves out the configuration of clusters that may not configure this one. That is no Problem:
// a cluster does not choose who obeys it.
func (a *admission) config(r *clustermesh.Record) {
	c := &r.Content
	if a.foreign && !slices.Contains(a.self.ConfigFrom, a.origin.Cluster) {
		r.Unasked, c.Config = len(c.Config), nil
	}
	c.Config = kept(c.Config, func(o clustermesh.ConfigObject) bool { return a.accepts(o.Kind, o.Name) })
}

func (a *admission) node(n clustermesh.Node) *clustermesh.Node {
	object := "node " + a.origin.String()
	given := "have its cluster state it anew: a restart of its daemon does"
	n.Locality = a.locality(object)
	if n.PublicKey != a.statement.WireGuard {
		a.refuse("key", object, "publicKey", "its cluster stated another WireGuard key", given)
		n.PublicKey = a.statement.WireGuard
	}
	n.Addresses = kept(n.Addresses, func(addr netip.Addr) bool {
		switch {
		case a.foreign && !contains(a.pin.Nodes, addr):
			return a.refuse("address range", object, "addresses", fmt.Sprintf("%s is not in the pinned node ranges of cluster %s %v", addr, a.origin.Cluster, a.pin.Nodes), a.repin())
		case !slices.Contains(a.statement.Addresses, addr):
			return a.refuse("address", object, "addresses", fmt.Sprintf("its cluster did not state that it has %s", addr), given)
		}
		return a.isNotOurs(object, "addresses", addr)
	})
	n.Prefixes = kept(n.Prefixes, func(p netip.Prefix) bool { return a.prefix(object, given, p) })
	n.ClusterIPs = kept(n.ClusterIPs, func(p netip.Prefix) bool { return slices.Contains(n.Prefixes, p) })
	if n.Inside.IsValid() && !contains(n.Prefixes, n.Inside) {
		a.refuse("inside", object, "inside", fmt.Sprintf("%s is in none of its prefixes", n.Inside), given)
		n.Inside = netip.Addr{}
	}
	return &n
}

// locality returns where a node is: as its cluster stated, if that is where the pin allows.
func (a *admission) locality(object string) clustermesh.Locality {
	l := a.statement.Locality
	switch {
	case !a.foreign:
	case !a.pin.inRegion(l):
		a.refuse("region", object, "region", fmt.Sprintf("%q is none of the pinned regions of cluster %s %q", l.Region, a.origin.Cluster, a.pin.Regions), a.repin())
	case !a.pin.inZone(l):
		a.refuse("zone", object, "zone", fmt.Sprintf("%q is none of the pinned zones of cluster %s %q", l.Zone, a.origin.Cluster, a.pin.Zones), a.repin())
	}
	return a.place()
}

// place returns the part of the stated locality that the pin allows.
func (a *admission) place() clustermesh.Locality {
	l := a.statement.Locality
	if a.foreign && !a.pin.inRegion(l) {
		return clustermesh.Locality{}
	}
	if a.foreign && !a.pin.inZone(l) {
		l.Zone = ""
	}
	return l
}

// inRegion reports whether a node of the cluster can be in that region. One that claims nothing can.
func (p Pin) inRegion(l clustermesh.Locality) bool {
	return l == clustermesh.Locality{} || len(p.Regions) == 0 || slices.Contains(p.Regions, l.Region)
}

// inZone reports whether a node of the cluster can be in that zone. One that claims none can.
func (p Pin) inZone(l clustermesh.Locality) bool {
	return l.Zone == "" || len(p.Zones) == 0 || slices.Contains(p.Zones, l.Zone)
}

func (a *admission) prefix(object, given string, p netip.Prefix) bool {
	if p.IsSingleIP() && p.Addr() == clustermesh.TunnelAddr(a.origin, p.Addr().Is6()) {
		return true
	}
	if a.foreign && !covers(a.pin.Pods, p) {
		return a.refuse("prefix range", object, "prefixes", fmt.Sprintf("%s is not in the pinned pod ranges of cluster %s %v", p, a.origin.Cluster, a.pin.Pods), a.repin())
	}
	if !covers(a.statement.Prefixes, p) {
		return a.refuse("prefix", object, "prefixes", fmt.Sprintf("its cluster did not state that it has %s", p), given)
	}
	if !a.foreign {
		return true
	}
	if i := slices.IndexFunc(a.self.Own, p.Overlaps); i >= 0 {
		return a.refuse("ours", object, "prefixes", fmt.Sprintf("%s overlaps %s, which belongs to cluster %s", p, a.self.Own[i], a.self.Cluster), overlapTry)
	}
	return true
}

const overlapTry = "give every cluster ranges of its own"

func (a *admission) repin() string {
	return fmt.Sprintf("if this is right, change the pin of cluster %s (authority.pinsFile)", a.origin.Cluster)
}

func (a *admission) isNotOurs(object, field string, addr netip.Addr) bool {
	if !a.foreign {
		return true
	}
	if i := slices.IndexFunc(a.self.Own, func(p netip.Prefix) bool { return p.Contains(addr) }); i >= 0 {
		return a.refuse("ours "+field, object, field, fmt.Sprintf("%s is in %s, which belongs to cluster %s", addr, a.self.Own[i], a.self.Cluster), overlapTry)
	}
	// Two nodes that are stated to have one address are for the plan to tell apart: one of them is wrong, and
	// it must not be able to take the other's tunnel.
	if field != "addresses" && a.self.Machines[addr] {
		return a.refuse("ours "+field, object, field, fmt.Sprintf("%s is the address of a machine of cluster %s", addr, a.self.Cluster), overlapTry)
	}
	return true
}

func (a *admission) endpoint(e clustermesh.Endpoint) bool {
	object := fmt.Sprintf("endpoint %s of Service %s of cluster %s", e.Addr, e.Service, a.origin.Cluster)
	if !a.accepts("endpoint of Service", e.Service) {
		return false
	}
	if err := clustermesh.CheckHost(e.Addr); err != nil {
		return a.refuse("host", object, "addr", err.Error(), "correct the EndpointSlice")
	}
	try := "correct the EndpointSlice: an endpoint has an address of the node that it names"
	switch {
	case e.Node != a.origin.Node:
		return a.refuse("node", object, "node", fmt.Sprintf("it is on node %q, and %s may not speak for that", e.Node, a.origin), try)
	case e.Node == "":
		if a.foreign && !contains(a.pin.Pods, e.Addr) && !contains(a.pin.Endpoints, e.Addr) {
			return a.refuse("nodeless", object, "addr", fmt.Sprintf("it names no node, and is in none of the pinned pods and endpoints of cluster %s %v", a.origin.Cluster, slices.Concat(a.pin.Pods, a.pin.Endpoints)),
				fmt.Sprintf("if it is a machine that Services of cluster %s may lead to, add its address to endpoints in the pin of that cluster, in every cluster (authority.pinsFile)", a.origin.Cluster))
		}
	case !contains(a.statement.Prefixes, e.Addr) && !slices.Contains(a.statement.Addresses, e.Addr):
		return a.refuse("elsewhere", object, "addr", fmt.Sprintf("it is not in the prefixes of node %s %v", a.origin, a.statement.Prefixes), try)
	case a.foreign && !contains(a.pin.Pods, e.Addr) && !contains(a.pin.Nodes, e.Addr):
		return a.refuse("range", object, "addr", fmt.Sprintf("it is in no pinned range of cluster %s", a.origin.Cluster), a.repin())
	}
	return a.isNotOurs(object, "addr", e.Addr)
}

// clusterIPs returns mirrored Services without the ClusterIPs that their cluster cannot have here.
func (a *admission) clusterIPs(es []clustermesh.Export) []clustermesh.Export {
	cloned := false
	for i := range es {
		ips := kept(es[i].IPs, func(ip netip.Addr) bool { return a.clusterIP(es[i].Service, ip) })
		if len(ips) == len(es[i].IPs) {
			continue
		}
		if !cloned {
			es, cloned = slices.Clone(es), true
		}
		es[i].IPs = ips
	}
	return es
}

func (a *admission) clusterIP(s clustermesh.ServiceName, ip netip.Addr) bool {
	object := fmt.Sprintf("mirrored Service %s of cluster %s", s, a.origin.Cluster)
	if a.foreign && !contains(a.pin.Pods, ip) {
		return a.refuse("ClusterIP", object, "ips", fmt.Sprintf("its ClusterIP %s is in no pinned range of pods of cluster %s", ip, a.origin.Cluster), a.repin())
	}
	return a.isNotOurs(object, "ips", ip)
}

// accepts reports whether this cluster accepts a Service of the origin's cluster. It is no Problem that
// a local namespace does not.
func (a *admission) accepts(kind string, s clustermesh.ServiceName) bool {
	matches := func(pattern string) bool { ok, _ := path.Match(pattern, s.Namespace); return ok }
	if !a.foreign {
		return true
	}
	switch accepted, says := a.self.Accept.From(s.Namespace, a.origin.Cluster); {
	case accepted:
		return true
	case says:
		return a.refuse("annotation "+kind, fmt.Sprintf("%s %s of cluster %s", kind, s, a.origin.Cluster), "namespace",
			fmt.Sprintf("Namespace %s of cluster %s does not accept it", s.Namespace, a.self.Cluster),
			fmt.Sprintf("to accept it, add %s to annotation %s of the Namespace", a.origin.Cluster, clustermesh.AnnotationAccept))
	case a.self.LocalNamespaces.Has(s.Namespace):
		return false
	case slices.ContainsFunc(a.pin.Namespaces, matches):
		return true
	}
	return a.refuse("namespace "+kind, fmt.Sprintf("%s %s of cluster %s", kind, s, a.origin.Cluster), "namespace",
		fmt.Sprintf("cluster %s accepts namespaces %v of it", a.self.Cluster, a.pin.Namespaces), "to accept it, add the namespace to the cluster's pin (authority.pinsFile)")
}

// located returns the endpoints with the zone of their node: a cluster cannot claim to be near.
func (a *admission) located(es []clustermesh.Endpoint) []clustermesh.Endpoint {
	zone := a.place().Zone
	elsewhere := func(e clustermesh.Endpoint) bool { return e.Zone != zone }
	if !a.foreign || !slices.ContainsFunc(es, elsewhere) {
		return es
	}
	es = slices.Clone(es)
	for i := range es {
		es[i].Zone = zone
	}
	return es
}

func contains(ps []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(a) })
}

// kept returns the elements for which ok is true: the list itself if it is true for all.
func kept[T any](list []T, ok func(T) bool) []T {
	for i, v := range list {
		if ok(v) {
			continue
		}
		out := slices.Clone(list[:i])
		for _, w := range list[i+1:] {
			if ok(w) {
				out = append(out, w)
			}
		}
		return out
	}
	return list
}

// shared bounds what a cluster shares, in sum. The oldest exports stay, so that one more never takes the
// place of another.
func (a *admission) shared(c *clustermesh.Content) {
	room := maxShared
	if a.pin.Quota.Exports > 0 {
		room = a.pin.Quota.Exports
	}
	if !a.foreign || len(c.Exports)+len(c.Globals)+len(c.Mirrors) <= room {
		return
	}
	for _, list := range []struct {
		field string
		of    *[]clustermesh.Export
	}{{"exports", &c.Exports}, {"mirrors", &c.Mirrors}} {
		*list.of = slices.Clone(*list.of)
		slices.SortStableFunc(*list.of, func(a, b clustermesh.Export) int {
			return cmp.Or(cmp.Compare(a.Created, b.Created), a.Service.Compare(b.Service))
		})
		*list.of = atMost(a, list.field, room, *list.of)
		slices.SortStableFunc(*list.of, func(a, b clustermesh.Export) int { return a.Service.Compare(b.Service) })
		room -= len(*list.of)
	}
	c.Globals = atMost(a, "globals", room, c.Globals)
}

// atMost returns the first elements of a list that is too long.
func atMost[T any](a *admission, field string, limit int, list []T) []T {
	if len(list) <= limit {
		return list
	}
	a.refuse("quota "+field, "record "+a.origin.String(), field,
		fmt.Sprintf("it has %d %s, and the quota is %d: the last %d", len(list), field, limit, len(list)-limit), a.repin())
	return list[:limit:limit]
}
