package authority

import (
	"fmt"
	"math"
	"net/netip"
	"path"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/record"
	"strait.io/strait/internal/problem"
)

// Admit returns the part of a record that its origin may publish, and a Problem for each reason why
// something is left out. Verify must have succeeded for the record. The record's own Problems, about
// content that cannot be used, stay. Admit never changes its arguments.
//
// A node's addresses, prefixes, locality and WireGuard key must be in its statement, and the statement
// inside the pin. An endpoint must have an address of its origin: the node's own, or one in the node's
// prefixes. An endpoint that names no node must be in the pinned pods or endpoints. No other cluster
// may have an address of the receiver's, share a Service of a namespace that does not accept it, or
// configure a cluster that does not accept its configuration. Records of the receiver's own cluster
// need only match the statements.
func Admit(self Self, pin Pin, s Statement, r clustermesh.Record) clustermesh.Record {
	a := &admission{self: self, pin: pin, statement: s, origin: r.Origin, foreign: r.Origin.Cluster != self.Cluster, quota: pin.Quota.WithDefaults()}
	if r.Content.Node != nil {
		r.KeyProven = s.KeyProven
	}
	return a.admit(a, r)
}

// AdmitUnpinned is Admit where nothing is pinned: it leaves out what namespaces do not accept, and all
// configuration, because any holder of the gossip key could have written it.
func AdmitUnpinned(self Self, r clustermesh.Record) clustermesh.Record {
	self.ConfigFrom = nil
	a := &admission{self: self, pin: Pin{Namespaces: []string{"*"}}, origin: r.Origin, foreign: r.Origin.Cluster != self.Cluster}
	open := len(self.Accept) == 0 && self.LocalNamespaces.Equal(clustermesh.LocalNamespaces{})
	return a.admit(unpinned{a, open}, r)
}

// admit returns the part of a record that a judge lets pass, with Problems about the rest.
func (a *admission) admit(j record.Judge, r clustermesh.Record) clustermesh.Record {
	if !j.Configures() {
		r.Unasked = len(r.Content.Config)
	}
	r.Content = record.Admit(j, r.Content)
	r.Problems = slices.Concat(r.Problems, a.found())
	return r
}

// admission is one call of Admit, with the pin and the statement to judge by. It is a record.Judge.
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

// Configures reports whether the origin may configure this cluster. If not, that is no Problem: a
// cluster does not choose which clusters accept its configuration.
func (a *admission) Configures() bool {
	return !a.foreign || slices.Contains(a.self.ConfigFrom, a.origin.Cluster)
}

// Quota returns what the pin allows. Only what other clusters share is limited in sum.
func (a *admission) Quota(q record.Quota) int {
	switch {
	case q == record.QuotaNodes:
		return a.quota.Nodes
	case q == record.QuotaEndpoints:
		return a.quota.Endpoints
	case q != record.QuotaShared || !a.foreign:
		return math.MaxInt
	case a.pin.Quota.Exports > 0:
		return a.pin.Quota.Exports
	}
	return maxShared
}

// TooMany records that the last elements of a list are left out.
func (a *admission) TooMany(field string, has, most int) {
	a.refuse("quota "+field, "record "+a.origin.String(), field,
		fmt.Sprintf("it has %d %s, and the quota is %d: the last %d", has, field, most, has-most), a.repin())
}

// NoRule records that a field is left out because it has no rule.
func (a *admission) NoRule(field string) {
	a.refuse("rule "+field, "record "+a.origin.String(), field, "strait has no rule for this field", "report a bug")
}

// Node returns the part of a node's description of itself that its cluster certified.
func (a *admission) Node(claimed *clustermesh.Node) *clustermesh.Node {
	n, object := *claimed, "node "+a.origin.String()
	given := "restart straitd on that node, so that its cluster issues a new statement"
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
		return a.isNotOurs(func() string { return object }, "addresses", addr)
	})
	n.Prefixes = kept(n.Prefixes, func(p netip.Prefix) bool { return a.prefix(object, given, p) })
	n.ClusterIPs = kept(n.ClusterIPs, func(p netip.Prefix) bool { return slices.Contains(n.Prefixes, p) })
	if n.Inside.IsValid() && !contains(n.Prefixes, n.Inside) {
		a.refuse("inside", object, "inside", fmt.Sprintf("%s is in none of its prefixes", n.Inside), given)
		n.Inside = netip.Addr{}
	}
	return &n
}

// locality returns the stated locality of a node, as far as the pin allows it.
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

// inRegion reports whether a node of the cluster can be in that region. An empty locality is allowed.
func (p Pin) inRegion(l clustermesh.Locality) bool {
	return l == clustermesh.Locality{} || len(p.Regions) == 0 || slices.Contains(p.Regions, l.Region)
}

// inZone reports whether a node of the cluster can be in that zone. No zone is allowed.
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

func (a *admission) isNotOurs(object func() string, field string, addr netip.Addr) bool {
	if !a.foreign {
		return true
	}
	if i := slices.IndexFunc(a.self.Own, func(p netip.Prefix) bool { return p.Contains(addr) }); i >= 0 {
		return a.refuse("ours "+field, object(), field, fmt.Sprintf("%s is in %s, which belongs to cluster %s", addr, a.self.Own[i], a.self.Cluster), overlapTry)
	}
	// If the statements of two nodes have one address, the plan decides: one of them is wrong, and must not
	// be able to take the other's tunnel.
	if field != "addresses" && a.self.Machines[addr] {
		return a.refuse("ours "+field, object(), field, fmt.Sprintf("%s is the address of a machine of cluster %s", addr, a.self.Cluster), overlapTry)
	}
	return true
}

func (a *admission) endpoint(e *clustermesh.Endpoint) bool {
	object := func() string {
		return fmt.Sprintf("endpoint %s of Service %s of cluster %s", e.Addr, e.Service, a.origin.Cluster)
	}
	if !a.Service(endpointOf, e.Service) {
		return false
	}
	if err := clustermesh.CheckHost(e.Addr); err != nil {
		return a.refuse("host", object(), "addr", err.Error(), "correct the EndpointSlice")
	}
	try := "correct the EndpointSlice: an endpoint has an address of the node that it names"
	switch {
	case e.Node != a.origin.Node:
		return a.refuse("node", object(), "node", fmt.Sprintf("it is on node %q, and %s may not publish endpoints of that node", e.Node, a.origin), try)
	case e.Node == "":
		if a.foreign && !contains(a.pin.Pods, e.Addr) && !contains(a.pin.Endpoints, e.Addr) {
			return a.refuse("nodeless", object(), "addr", fmt.Sprintf("it names no node, and is in none of the pinned pods and endpoints of cluster %s %v", a.origin.Cluster, slices.Concat(a.pin.Pods, a.pin.Endpoints)),
				fmt.Sprintf("if it is a machine that Services of cluster %s may lead to, add its address to endpoints in the pin of that cluster, in every cluster (authority.pinsFile)", a.origin.Cluster))
		}
	case !contains(a.statement.Prefixes, e.Addr) && !slices.Contains(a.statement.Addresses, e.Addr):
		return a.refuse("elsewhere", object(), "addr", fmt.Sprintf("it is not in the prefixes of node %s %v", a.origin, a.statement.Prefixes), try)
	case a.foreign && !contains(a.pin.Pods, e.Addr) && !contains(a.pin.Nodes, e.Addr):
		return a.refuse("range", object(), "addr", fmt.Sprintf("it is in no pinned range of cluster %s", a.origin.Cluster), a.repin())
	}
	return a.isNotOurs(object, "addr", e.Addr)
}

// ClusterIPs returns mirrored Services without the ClusterIPs that their cluster cannot have here.
func (a *admission) ClusterIPs(es []clustermesh.Export) []clustermesh.Export {
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
	object := func() string { return fmt.Sprintf("mirrored Service %s of cluster %s", s, a.origin.Cluster) }
	if a.foreign && !contains(a.pin.Pods, ip) {
		return a.refuse("ClusterIP", object(), "ips", fmt.Sprintf("its ClusterIP %s is in no pinned range of pods of cluster %s", ip, a.origin.Cluster), a.repin())
	}
	return a.isNotOurs(object, "ips", ip)
}

// Service reports whether this cluster accepts a Service of the origin's cluster. A refusal by a local
// namespace is no Problem.
func (a *admission) Service(kind string, s clustermesh.ServiceName) bool {
	matches := func(pattern string) bool { ok, _ := path.Match(pattern, s.Namespace); return ok }
	if !a.foreign {
		return true
	}
	switch accepted, annotated := a.self.Accept.From(s.Namespace, a.origin.Cluster); {
	case accepted:
		return true
	case annotated:
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

// Endpoints returns the endpoints that are the origin's, with the zone of their node: a cluster cannot
// claim to be near.
func (a *admission) Endpoints(es []clustermesh.Endpoint) []clustermesh.Endpoint {
	es = record.Kept(es, a.endpoint)
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

// kept is record.Kept for small values.
func kept[T any](all []T, ok func(T) bool) []T {
	return record.Kept(all, func(v *T) bool { return ok(*v) })
}

// endpointOf is what Problems call the Service of an endpoint.
const endpointOf = "endpoint of Service"

// unpinned is the record.Judge where nothing is pinned: only namespaces limit what others share.
type unpinned struct {
	*admission
	// open is true if all namespaces accept everything.
	open bool
}

func (u unpinned) Node(n *clustermesh.Node) *clustermesh.Node { return n }

func (u unpinned) Endpoints(es []clustermesh.Endpoint) []clustermesh.Endpoint {
	return record.Kept(es, func(e *clustermesh.Endpoint) bool { return u.Service(endpointOf, e.Service) })
}

func (u unpinned) Service(what string, s clustermesh.ServiceName) bool {
	return u.open || u.admission.Service(what, s)
}

func (u unpinned) ClusterIPs(es []clustermesh.Export) []clustermesh.Export { return es }

func (u unpinned) Quota(record.Quota) int { return math.MaxInt }
