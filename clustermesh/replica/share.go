package replica

import (
	"slices"
	"unique"

	"strait.io/strait/clustermesh"
)

// maxShared bounds how many lists of ports of one record are compared.
const maxShared = 16

// share makes one string, and one list of ports, of all equal ones of a record that was just decoded: endpoints repeat
// few names many times, each in memory of its own.
func share(c *clustermesh.Content) {
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

func shareName(s *clustermesh.ServiceName) {
	intern(&s.Namespace)
	intern(&s.Name)
}

func intern[S ~string](s *S) { *s = unique.Make(*s).Value() }
