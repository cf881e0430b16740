// Package trust decides what Kubernetes clusters pin of each other when they are connected: roots, and
// the ranges of pods and nodes.
//
// Inputs are the content of each cluster's API server, the pins that it has, and the operator's flags;
// outputs are the pins of all clusters, for people to confirm, or the reasons why there are none. Pure:
// it must not know an API server or a secret.
package trust

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/bundle"
)

// Member is a cluster with a context.
type Member struct {
	bundle.Cluster
	// Ranges are those of its pods, as its network names them; see Sources.
	Ranges []netip.Prefix
	// PodAddrs are the addresses that its pods have, which count if nothing else names a range.
	PodAddrs []netip.Addr
	// Regions and Zones are those of its nodes, with "" if a node has no such label; nil if there are no
	// nodes.
	Regions, Zones []string
	// Root is the public key of the cluster's root.
	Root authority.PublicKey
	// Pins are those that the cluster has; nil if it has none.
	Pins authority.Pins
}

// Asked is what the operator set for clusters, by id, in place of what was found.
type Asked struct {
	Pods, Nodes                map[string][]netip.Prefix
	Regions, Zones, Namespaces map[string][]string
}

// Names returns the clusters for which something is set, sorted.
func (a Asked) Names() (out []string) {
	for _, m := range []map[string][]netip.Prefix{a.Pods, a.Nodes} {
		for c := range m {
			out = append(out, c)
		}
	}
	for _, m := range []map[string][]string{a.Regions, a.Zones, a.Namespaces} {
		for c := range m {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Propose returns the pins that all members should have. All is the ids of the whole clusterset: a
// cluster without a context keeps the pin that a member has of it. A pin that exists keeps its ranges,
// namespaces and quota, unless the operator sets others. Each cluster's own namespaces are its own
// word: see For.
func Propose(members []Member, all []string, asked Asked, now time.Time) (authority.Pins, error) {
	pins := authority.Pins{}
	var errs []error
	known := map[string]bool{}
	first := true
	for _, m := range members {
		known[m.ID] = true
		for c, p := range m.Pins {
			if _, have := pins[c]; !have && !m.alone() {
				pins[c], first = p, false
			}
		}
	}
	for _, m := range members {
		had := pins[clustermesh.ClusterName(m.ID)]
		if m.alone() {
			had = m.unconfirmed()
		}
		p, err := m.pin(had, asked)
		errs = append(errs, err)
		if _, pinned := pins[p.Cluster]; !pinned && !first {
			p.Joined = now.UTC().Truncate(time.Second) // the others had each other's exports before
		}
		pins[p.Cluster] = p
	}
	for _, id := range all {
		if _, pinned := pins[clustermesh.ClusterName(id)]; !pinned {
			errs = append(errs, fmt.Errorf("cluster %s is a member, and nothing is pinned of it; give its --context too, or --pin=false to join without pins", id))
		}
	}
	for _, id := range asked.Names() {
		if !known[id] {
			errs = append(errs, fmt.Errorf("%s is the id of no cluster that was given: want one of %s", id, strings.Join(ids(members), ", ")))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	checked, err := authority.ParsePins(pins.Encode()) // which checks every field
	if err != nil {
		return nil, err
	}
	return checked, checked.Overlap()
}

// Alone returns the pins of a cluster that knows no other: its own. They name no ranges of nodes, so that those
// of the next subnet are believed too.
func Alone(m Member) (authority.Pins, error) {
	p, err := m.pin(authority.Pin{}, Asked{})
	if err != nil {
		return nil, err
	}
	p.Nodes, p.Regions, p.Zones = nil, nil, nil
	return authority.ParsePins(authority.Pins{p.Cluster: p}.Encode()) // which checks every field
}

// alone reports whether a cluster pins itself and no other. No operator confirmed such pins: install made them, or
// the cluster's leader.
func (m Member) alone() bool {
	_, own := m.Pins[clustermesh.ClusterName(m.ID)]
	return own && len(m.Pins) == 1
}

// unconfirmed returns the own pin of a lone cluster, without what is better proposed again.
func (m Member) unconfirmed() authority.Pin {
	p := m.Pins[clustermesh.ClusterName(m.ID)]
	p.Nodes, p.Regions, p.Zones = nil, nil, nil
	outside := func(have netip.Prefix) bool {
		return !slices.ContainsFunc(p.Pods, func(q netip.Prefix) bool { return q.Bits() <= have.Bits() && q.Contains(have.Addr()) })
	}
	if len(m.Ranges) > 0 || slices.ContainsFunc(m.PodCIDRs, outside) {
		p.Pods = nil
	}
	return p
}

// For returns the pins as one cluster has them: what it accepted before stays, unless the
// operator sets something else now.
func For(pins authority.Pins, m Member, asked Asked) authority.Pins {
	out := authority.Pins{}
	for c, p := range pins {
		had, pinned := m.Pins[c]
		_, chosen := asked.Namespaces[string(c)]
		if pinned && !chosen {
			p.Namespaces = had.Namespaces
		}
		out[c] = p
	}
	return out
}

func ids(members []Member) (out []string) {
	for _, m := range members {
		out = append(out, m.ID)
	}
	return out
}

// pin returns the pin of a member: what was pinned, or else what is found.
func (m Member) pin(had authority.Pin, asked Asked) (authority.Pin, error) {
	p := had
	p.Cluster, p.UID = clustermesh.ClusterName(m.ID), m.UID
	if !slices.Contains(p.Roots, m.Root) {
		p.Roots = []authority.PublicKey{m.Root}
	}
	var nodes, addrs []netip.Prefix
	for _, n := range m.Cluster.Nodes {
		nodes = append(nodes, netip.PrefixFrom(n.Addr(), n.Addr().BitLen()))
	}
	for _, a := range m.PodAddrs {
		addrs = append(addrs, netip.PrefixFrom(a, a.BitLen()))
	}
	p.Pods = choose(asked.Pods[m.ID], p.Pods, m.Ranges, cover(m.PodCIDRs, 16, 48), cover(addrs, 16, 48))
	p.Nodes = choose(asked.Nodes[m.ID], p.Nodes, cover(nodes, 24, 64))
	p.Regions = choose(asked.Regions[m.ID], p.Regions, m.Regions)
	p.Zones = choose(asked.Zones[m.ID], p.Zones, m.Zones)
	p.Namespaces = choose(asked.Namespaces[m.ID], p.Namespaces, []string{"*"})
	return p, m.misses(p, nodes)
}

// misses returns an error unless the ranges, regions and zones contain what the cluster has.
func (m Member) misses(p authority.Pin, nodes []netip.Prefix) error {
	var errs []error
	for _, c := range []struct {
		what    string
		has, in []string
	}{{"region", m.Regions, p.Regions}, {"zone", m.Zones, p.Zones}} {
		for _, have := range c.has {
			if have != "" && !slices.Contains(c.in, have) {
				errs = append(errs, fmt.Errorf("cluster %s has a node in %s %s, which is none of %v: pass --%[2]ss %[1]s=NAME[,NAME]", m.ID, c.what, have, c.in))
			}
		}
	}
	if len(p.Pods) == 0 {
		errs = append(errs, fmt.Errorf("cluster %s: its pod ranges are not in the CNI's configuration, Nodes or pods; pass --pods %s=CIDR", m.ID, m.ID))
	}
	for _, c := range []struct {
		what, flag string
		has, in    []netip.Prefix
	}{{"pods", "pods", m.PodCIDRs, p.Pods}, {"a node", "nodes", nodes, p.Nodes}} {
		for _, have := range c.has {
			inside := func(q netip.Prefix) bool { return q.Bits() <= have.Bits() && q.Contains(have.Addr()) }
			if len(c.in) > 0 && !slices.ContainsFunc(c.in, inside) {
				errs = append(errs, fmt.Errorf("cluster %s has %s at %s, which is not in %v: pass --%s %s=CIDR[,CIDR]", m.ID, c.what, have, c.in, c.flag, m.ID))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// choose returns the first list that is not empty.
func choose[T any](lists ...[]T) []T {
	for _, l := range lists {
		if len(l) > 0 {
			return l
		}
	}
	return nil
}

// cover returns for each IP family the narrowest prefix that contains all, but none narrower than the
// given lengths: nodes come and go.
func cover(all []netip.Prefix, bits4, bits6 int) (out []netip.Prefix) {
	for _, four := range []bool{true, false} {
		var c netip.Prefix
		for _, p := range all {
			switch {
			case p.Addr().Is4() != four:
			case !c.IsValid():
				widest := bits4
				if !four {
					widest = bits6
				}
				c = netip.PrefixFrom(p.Addr(), min(p.Bits(), widest)).Masked()
			default:
				for !c.Contains(p.Addr()) || p.Bits() < c.Bits() {
					c = netip.PrefixFrom(c.Addr(), c.Bits()-1).Masked()
				}
			}
		}
		if c.IsValid() {
			out = append(out, c)
		}
	}
	return out
}
