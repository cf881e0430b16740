package clustermesh

import (
	"maps"
	"slices"
)

// Equal reports whether both are nil, or equal.
func (n *Node) Equal(o *Node) bool {
	if n == nil || o == nil {
		return n == o
	}
	return n.Name == o.Name && n.Locality == o.Locality && slices.Equal(n.Addresses, o.Addresses) && slices.Equal(n.Prefixes, o.Prefixes) &&
		n.Inside == o.Inside && n.PublicKey == o.PublicKey && n.WireGuardPort == o.WireGuardPort && n.GossipPort == o.GossipPort &&
		n.Drain.Equal(o.Drain) && n.Follower == o.Follower && n.Proves == o.Proves && n.Life == o.Life && slices.Equal(n.ClusterIPs, o.ClusterIPs) &&
		n.Version == o.Version && n.Canary == o.Canary && n.Speaks == o.Speaks && n.Relay == o.Relay
}

// Equal reports whether two exports are identical.
func (e Export) Equal(o Export) bool {
	return e.Service == o.Service && e.Type == o.Type && slices.Equal(e.Ports, o.Ports) && e.Created == o.Created &&
		e.AffinitySeconds == o.AffinitySeconds && e.InternalTrafficPolicy == o.InternalTrafficPolicy && e.TrafficDistribution == o.TrafficDistribution &&
		slices.Equal(e.Families, o.Families) && e.FamiliesDeclared == o.FamiliesDeclared && maps.Equal(e.Labels, o.Labels) && maps.Equal(e.Annotations, o.Annotations) &&
		e.Routing.Equal(o.Routing) && slices.Equal(e.To, o.To) && e.Policy == o.Policy && slices.Equal(e.IPs, o.IPs)
}

// Equal reports whether two global services are identical.
func (g Global) Equal(o Global) bool {
	return g.Service == o.Service && slices.Equal(g.Ports, o.Ports) && slices.Equal(g.IPs, o.IPs) && g.Shared == o.Shared && g.Affinity == o.Affinity &&
		g.AffinitySeconds == o.AffinitySeconds && g.InternalTrafficPolicy == o.InternalTrafficPolicy && g.TrafficDistribution == o.TrafficDistribution &&
		g.Routing.Equal(o.Routing) && slices.Equal(g.To, o.To) && slices.Equal(g.From, o.From) && g.Policy == o.Policy && g.Slices.Equal(o.Slices)
}
