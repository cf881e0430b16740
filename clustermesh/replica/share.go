package replica

import (
	"slices"
	"strings"
	"unique"

	"strait.io/strait/clustermesh"
)

// maxShared bounds how many lists of ports of one record are compared.
const maxShared = 16

// share makes one string, and one list of ports, of all equal ones of a record that was just decoded: endpoints repeat
// few names many times, each in memory of its own.
func share(c *clustermesh.Content) {
	sharePods(c.Endpoints)
	var lists [][]clustermesh.EndpointPort
	for i := range c.Endpoints {
		e := &c.Endpoints[i]
		shareName(&e.Service)
		intern(&e.Node)
		intern(&e.Zone)
		n := slices.IndexFunc(lists, func(l []clustermesh.EndpointPort) bool { return slices.Equal(l, e.Ports) })
		switch {
		case n >= 0 && e.Ports != nil:
			e.Ports = lists[n]
		case len(lists) < maxShared && len(e.Ports) > 0:
			for j := range e.Ports {
				intern(&e.Ports[j].Name)
			}
			lists = append(lists, e.Ports)
		}
	}
	for i := range c.Exports {
		e := &c.Exports[i]
		shareName(&e.Service)
		intern(&e.Type)
		intern(&e.InternalTrafficPolicy)
		intern(&e.TrafficDistribution)
		for j := range e.Ports {
			intern(&e.Ports[j].Name)
			intern(&e.Ports[j].AppProtocol)
		}
		for j := range e.Families {
			intern(&e.Families[j])
		}
	}
	for i := range c.Globals {
		shareName(&c.Globals[i].Service)
	}
	for i := range c.Allocations {
		shareName(&c.Allocations[i].Service)
	}
	for i := range c.Nodes {
		intern(&c.Nodes[i])
	}
}

// sharePods puts the names of pods, no two of which are equal, one after the other into one string. Nobody keeps the name of
// a pod longer than its record; with the names of services, which are kept, this would keep those of all pods.
func sharePods(es []clustermesh.Endpoint) {
	var all strings.Builder
	size := 0
	for i := range es {
		size += len(es[i].Pod)
	}
	all.Grow(size)
	for i := range es {
		all.WriteString(es[i].Pod)
	}
	rest := all.String()
	for i := range es {
		n := len(es[i].Pod)
		es[i].Pod, rest = rest[:n], rest[n:]
	}
}

func shareName(s *clustermesh.ServiceName) {
	intern(&s.Namespace)
	intern(&s.Name)
}

func intern[S ~string](s *S) { *s = unique.Make(*s).Value() }
