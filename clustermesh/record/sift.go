// Package record checks what records contain: which origin may write what, and what of it can be
// used.
//
// Inputs are the contents of records; outputs are the part that counts, and Problems about the rest.
// Pure. It must not know how records travel (packages replica and gossip), nor the pins and
// statements that say what an origin may claim (package authority).
package record

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// maxGossipKeys is how many gossip keys a node can have.
const maxGossipKeys = 2

// maxRevoked is how many keys a cluster can have revoked.
const maxRevoked = 1 << 10

// maxWithdrawn is how many withdrawals count of one cluster: two for each of many nodes.
const maxWithdrawn = 1 << 14

// maxResults bounds the results of a record.
const maxResults = 1 << 10

// maxUnusable bounds the Problems of one record.
const maxUnusable = 8

// Usable returns the valid part of a content, and a Problem for each object that is left out: a
// record must not vanish because of one bad prefix. If all of the content is valid, Usable returns
// it as it is. It never changes its argument.
func Usable(o clustermesh.Origin, c clustermesh.Content) (clustermesh.Content, []clustermesh.Problem) {
	c, problems, _ := Sift(o, c, math.MaxInt)
	return c, problems
}

// Sift is Usable for what comes from outside: it gives up once it has found more than so many faults, for
// each costs as much as some hundred bytes. It returns how many it found. If they are too many, its other
// results mean nothing.
func Sift(o clustermesh.Origin, c clustermesh.Content, most int) (clustermesh.Content, []clustermesh.Problem, int) {
	u := &usable{origin: o, most: most}
	u.writer(&c)
	if c.Node != nil {
		c.Node = u.node(c.Node)
	}
	c.Endpoints = u.endpoints(c.Endpoints)
	c.Exports = keep(u, c.Exports, func(i int) bool {
		err := c.Exports[i].Check()
		return err == nil || u.checked("ServiceExport "+u.of(c.Exports[i].Service), "", err)
	})
	c.Mirrors = keep(u, c.Mirrors, func(i int) bool {
		err := c.Mirrors[i].Check()
		return err == nil || u.checked("mirrored Service "+u.of(c.Mirrors[i].Service), "", err)
	})
	c.Globals = keep(u, c.Globals, func(i int) bool {
		err := c.Globals[i].Check()
		return err == nil || u.checked("global Service "+u.of(c.Globals[i].Service), "", err)
	})
	c.Exports = routed(c.Exports, func(e *clustermesh.Export) **clustermesh.Routing { return &e.Routing }, func(e clustermesh.Export, err error) bool {
		return u.checked("ServiceExport "+u.of(e.Service), "routing", err)
	})
	c.Globals = routed(c.Globals, func(g *clustermesh.Global) **clustermesh.Routing { return &g.Routing }, func(g clustermesh.Global, err error) bool {
		return u.checked("global Service "+u.of(g.Service), "routing", err)
	})
	if !u.checked("record "+o.String(), "drain", c.Drain.Check()) {
		c.Drain = nil
	}
	c.Drains = keep(u, c.Drains[:min(len(c.Drains), clustermesh.MaxDrains)], func(i int) bool {
		d := c.Drains[i]
		return u.checked("record "+o.String(), at("drains", i), errors.Join(clustermesh.CheckName(string(d.Node)), d.Drain.Check()))
	})
	c.Allocations = keep(u, c.Allocations, func(i int) bool {
		a := c.Allocations[i]
		err := errors.Join(a.Service.Check(), clustermesh.CheckHost(a.IP))
		return err == nil || u.checked("ServiceImport "+u.of(a.Service), "ip", err)
	})
	c.Silent = keep(u, c.Silent, func(i int) bool {
		err := u.silence(c.Silent[i])
		return err == nil || u.checked("record "+o.String(), at("silent", i), err)
	})
	c.Late = keep(u, c.Late[:min(len(c.Late), clustermesh.MaxLate)], func(i int) bool {
		l := c.Late[i]
		err := errors.Join(clustermesh.CheckName(string(l.Cluster)), l.Service.Check())
		return err == nil || u.checked("record "+o.String(), at("late", i), err)
	})
	u.keys(&c)
	u.results(&c)
	u.config(&c)
	if !u.names(c.Nodes) {
		c.Nodes = nil // an unlisted node counts as gone, so part of the list is worse than none
	}
	if u.more > 0 {
		u.problems = append(u.problems, clustermesh.Problem{
			Code:   problem.RecordPartLeftOut,
			Object: "record " + o.String(), Message: fmt.Sprintf("%d more of its objects cannot be used: left out", u.more), Try: u.try(),
		})
	}
	return c, u.problems, u.found
}

// keys leaves out fingerprints that are none, and withdrawals that say nothing.
func (u *usable) keys(c *clustermesh.Content) {
	object := "record " + u.origin.String()
	c.GossipKeys = keep(u, c.GossipKeys[:min(len(c.GossipKeys), maxGossipKeys)], func(i int) bool {
		return u.checked(object, at("gossipKeys", i), clustermesh.CheckText(c.GossipKeys[i], clustermesh.MaxWord))
	})
	c.Revoked = keep(u, c.Revoked[:min(len(c.Revoked), maxRevoked)], func(i int) bool {
		return u.checked(object, at("revoked", i), clustermesh.CheckFingerprint(c.Revoked[i]))
	})
	u.withdrawn(c)
}

// withdrawn leaves out withdrawals that cannot be used. They must be in order, so that one is found quickly.
func (u *usable) withdrawn(c *clustermesh.Content) {
	var last clustermesh.Withdrawal
	c.Withdrawn = keep(u, c.Withdrawn[:min(len(c.Withdrawn), maxWithdrawn)], func(i int) bool {
		w := c.Withdrawn[i]
		err := clustermesh.CheckName(string(w.Node))
		if err == nil && w.Compare(last) <= 0 {
			err = errors.New("the list is not sorted, or names it twice")
		}
		if err == nil {
			last = w
		}
		return u.checked("record "+u.origin.String(), at("withdrawn", i), err)
	})
}

// results leaves out what cannot be shown of policies.
func (u *usable) results(c *clustermesh.Content) {
	c.Results = keep(u, c.Results[:min(len(c.Results), maxResults)], func(i int) bool {
		return u.checked("record "+u.origin.String(), at("results", i), c.Results[i].Check())
	})
}

// config leaves out objects that no cluster can carry out.
func (u *usable) config(c *clustermesh.Content) {
	c.Config = keep(u, c.Config[:min(len(c.Config), clustermesh.MaxConfigObjects)], func(i int) bool {
		return u.checked("record "+u.origin.String(), at("config", i), c.Config[i].Check())
	})
}

// routed leaves out routing that cannot be used. The Service stays.
func routed[T any](list []T, of func(*T) **clustermesh.Routing, checked func(T, error) bool) []T {
	cloned := false
	for i := range list {
		err := (*of(&list[i])).Check()
		if err == nil || checked(list[i], err) {
			continue
		}
		if !cloned {
			list, cloned = slices.Clone(list), true
		}
		*of(&list[i]) = nil
	}
	return list
}

// usable collects the Problems of one content.
type usable struct {
	origin   clustermesh.Origin
	problems []clustermesh.Problem
	more     int // Problems beyond the bound
	// found counts the faults. Above most, nothing more is looked at.
	found, most int
}

func (u *usable) full() bool { return u.found > u.most }

func (u *usable) try() string {
	return fmt.Sprintf("correct it in cluster %s; the rest is in force", u.origin.Cluster)
}

// checked reports whether err is nil. If not, it records a Problem.
func (u *usable) checked(object, field string, err error) bool {
	if err == nil {
		return true
	}
	u.found++
	switch {
	case len(u.problems) < maxUnusable:
		u.problems = append(u.problems, clustermesh.Problem{Code: problem.RecordPartLeftOut, Object: object, Field: field, Message: err.Error() + ": left out", Try: u.try()})
	default:
		u.more++
	}
	return false
}

// of returns how Problems name a Service of the origin's cluster.
func (u *usable) of(s clustermesh.ServiceName) string {
	name := s.String()
	if s.Check() != nil {
		name = clustermesh.Quoted(name)
	}
	return name + " of cluster " + string(u.origin.Cluster)
}

// writer removes what this kind of origin must not write: nodes write no exports, leaders no node.
func (u *usable) writer(c *clustermesh.Content) {
	object := "record " + u.origin.String()
	foreign := func(field string, is bool) bool {
		return is && !u.checked(object, field, errors.New("this kind of origin must not write it"))
	}
	if u.origin.Node == "" {
		if foreign("node", c.Node != nil) {
			c.Node = nil
		}
		if foreign("silent", len(c.Silent) > 0) {
			c.Silent = nil
		}
		if foreign("gossipKeys", len(c.GossipKeys) > 0) {
			c.GossipKeys = nil
		}
		return
	}
	if foreign("exports", len(c.Exports) > 0) {
		c.Exports = nil
	}
	if foreign("mirrors", len(c.Mirrors) > 0) {
		c.Mirrors = nil
	}
	if foreign("results", len(c.Results) > 0) {
		c.Results = nil
	}
	if foreign("config", len(c.Config) > 0) {
		c.Config = nil
	}
	if foreign("globals", len(c.Globals) > 0) {
		c.Globals = nil
	}
	if foreign("allocations", len(c.Allocations) > 0) {
		c.Allocations = nil
	}
	if foreign("nodes", len(c.Nodes) > 0) {
		c.Nodes = nil
	}
	if foreign("late", len(c.Late) > 0) {
		c.Late = nil
	}
	if foreign("revoked", len(c.Revoked) > 0) {
		c.Revoked = nil
	}
	if foreign("withdrawn", len(c.Withdrawn) > 0) {
		c.Withdrawn = nil
	}
	if foreign("drain", c.Drain != nil) {
		c.Drain = nil
	}
	if foreign("drains", len(c.Drains) > 0) {
		c.Drains = nil
	}
}

func (u *usable) node(given *clustermesh.Node) *clustermesh.Node {
	n, object := *given, "node "+u.origin.String()
	if n.Name != u.origin.Node {
		u.checked(object, "name", fmt.Errorf("the record says %s", clustermesh.Quoted(string(n.Name))))
		return nil
	}
	found := u.found
	if !u.checked(object, "locality.region", clustermesh.CheckText(n.Locality.Region, clustermesh.MaxName)) {
		n.Locality.Region = ""
	}
	if !u.checked(object, "locality.zone", clustermesh.CheckText(n.Locality.Zone, clustermesh.MaxName)) {
		n.Locality.Zone = ""
	}
	if !u.checked(object, "drain", n.Drain.Check()) {
		n.Drain = nil
	}
	n.Addresses = keep(u, n.Addresses, func(i int) bool { return u.checked(object, at("addresses", i), clustermesh.CheckHost(n.Addresses[i])) })
	n.Prefixes = keep(u, n.Prefixes, func(i int) bool { return u.checked(object, at("prefixes", i), clustermesh.CheckPrefix(n.Prefixes[i])) })
	n.ClusterIPs = keep(u, n.ClusterIPs, func(i int) bool {
		if !slices.Contains(n.Prefixes, n.ClusterIPs[i]) {
			return u.checked(object, at("clusterIPs", i), fmt.Errorf("%s is none of its prefixes", n.ClusterIPs[i]))
		}
		return true
	})
	if n.Inside.IsValid() && !u.checked(object, "inside", clustermesh.CheckHost(n.Inside)) {
		n.Inside = netip.Addr{}
	}
	if u.found == found {
		return given
	}
	return &n
}

// endpoints returns the usable endpoints, without their unusable ports and fields.
func (u *usable) endpoints(given []clustermesh.Endpoint) []clustermesh.Endpoint {
	var out []clustermesh.Endpoint
	changed := false
	for i := range given {
		if u.full() {
			return nil
		}
		found := u.found
		e, ok := u.endpoint(given[i])
		if !changed && u.found > found {
			changed, out = true, slices.Clone(given[:i])
		}
		if changed && ok {
			out = append(out, e)
		}
	}
	if !changed {
		return given
	}
	return out
}

func (u *usable) endpoint(e clustermesh.Endpoint) (clustermesh.Endpoint, bool) {
	object := func() string { return fmt.Sprintf("endpoint %s of %s", e.Addr, u.of(e.Service)) }
	fine := func(field string, err error) bool { return err == nil || u.checked(object(), field, err) }
	if !fine("service", e.Service.Check()) || !fine("addr", clustermesh.CheckHost(e.Addr)) {
		return e, false
	}
	if u.origin.Node != "" && e.Node != "" && e.Node != u.origin.Node {
		return e, fine("node", fmt.Errorf("it is on node %s, which publishes it itself", clustermesh.Quoted(string(e.Node))))
	}
	if e.Node != "" && !fine("node", clustermesh.CheckName(string(e.Node))) {
		return e, false
	}
	if !fine("zone", clustermesh.CheckText(e.Zone, clustermesh.MaxName)) {
		e.Zone = ""
	}
	if !fine("hostname", clustermesh.CheckHostname(e.Hostname)) {
		e.Hostname = ""
	}
	if !fine("pod", clustermesh.CheckText(e.Pod, clustermesh.MaxName)) {
		e.Pod = ""
	}
	ports := e.Ports
	e.Ports = keep(u, ports, func(i int) bool {
		err := ports[i].Check()
		return err == nil || u.checked(object(), at("ports", i), err)
	})
	return e, true
}

func (u *usable) silence(s clustermesh.Silence) error {
	if err := s.Origin.Check(); err != nil {
		return err
	}
	if s.Origin.Node == "" || s.Origin == u.origin {
		return fmt.Errorf("%s is not another node", s.Origin)
	}
	return nil
}

// names reports whether the names of a cluster's Nodes are usable: valid, sorted and unique.
func (u *usable) names(nodes []clustermesh.NodeName) bool {
	for i, n := range nodes {
		err := clustermesh.CheckName(string(n))
		if err == nil && i > 0 && n <= nodes[i-1] {
			err = fmt.Errorf("%s does not come after %s: names must be sorted and unique", clustermesh.Quoted(string(n)), clustermesh.Quoted(string(nodes[i-1])))
		}
		if err != nil {
			return u.checked("record "+u.origin.String(), at("nodes", i), err)
		}
	}
	return true
}

// keep returns the elements whose index passes, or the list itself if all do.
func keep[T any](u *usable, list []T, pass func(i int) bool) []T {
	var out []T
	dropped := false
	for i := range list {
		if u.full() {
			return nil
		}
		ok := pass(i)
		if !ok && !dropped {
			dropped, out = true, slices.Clone(list[:i])
		}
		if ok && dropped {
			out = append(out, list[i])
		}
	}
	if !dropped {
		return list
	}
	return out
}

func at(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }
