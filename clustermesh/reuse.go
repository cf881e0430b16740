package clustermesh

import (
	"maps"
	"slices"
)

// Reuse returns l with the lists of an earlier Local in place of those that say the same. Most changes are of endpoints: what
// a large cluster exports is then held once, and who compares two Locals sees at once that it is the same.
func (l Local) Reuse(before Local) Local {
	l.Exports = reuse(l.Exports, before.Exports, Export.Equal)
	l.ExportStatus = reuse(l.ExportStatus, before.ExportStatus, func(e, o ExportStatus) bool { return e == o })
	l.Globals = reuse(l.Globals, before.Globals, Global.Equal)
	l.Endpoints = reuse(l.Endpoints, before.Endpoints, Endpoint.Equal)
	l.Allocations = reuse(l.Allocations, before.Allocations, func(a, o Allocation) bool { return a == o })
	return l
}

func reuse[T any](now, before []T, equal func(T, T) bool) []T {
	if slices.EqualFunc(now, before, equal) {
		return before
	}
	return now
}

// Equal reports that two exports say the same.
func (e Export) Equal(o Export) bool {
	return e.Service == o.Service && e.Type == o.Type && slices.Equal(e.Ports, o.Ports) && e.Created == o.Created &&
		e.AffinitySeconds == o.AffinitySeconds && e.InternalTrafficPolicy == o.InternalTrafficPolicy && e.TrafficDistribution == o.TrafficDistribution &&
		slices.Equal(e.Families, o.Families) && maps.Equal(e.Labels, o.Labels) && maps.Equal(e.Annotations, o.Annotations)
}

// Equal reports that two global services say the same.
func (g Global) Equal(o Global) bool {
	return g.Service == o.Service && slices.Equal(g.Ports, o.Ports) && slices.Equal(g.IPs, o.IPs) && g.Shared == o.Shared && g.Affinity == o.Affinity &&
		g.AffinitySeconds == o.AffinitySeconds && g.InternalTrafficPolicy == o.InternalTrafficPolicy && g.TrafficDistribution == o.TrafficDistribution
}
