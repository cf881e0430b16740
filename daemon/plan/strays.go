package plan

import (
	"net/netip"

	"strait.io/strait/daemon/plan/mesh"
)

// strays returns the endpoints of a record that have others' addresses. Those of this node's own cluster can
// be behind its own Services whatever others say.
func (in indexInputs) strays(src *source) map[netip.Addr]mesh.Stray {
	var out map[netip.Addr]mesh.Stray
	for i := range src.endpoints {
		m := member{&src.endpoints[i], src}
		o := src.origin
		if m.Node != "" {
			o.Node = m.Node
		}
		s, is := in.mesh.Stray(o, m.addr())
		if !is && m.addr() != m.Addr { // slices and DNS have that one
			s, is = in.mesh.Stray(o, m.Addr)
		}
		if !is {
			continue
		}
		if o.Cluster == in.Self.Cluster {
			s.Why = ""
		}
		if out == nil {
			out = map[netip.Addr]mesh.Stray{}
		}
		out[m.Addr] = s
	}
	return out
}

// stray returns what is wrong with the endpoint's address.
func (m member) stray() mesh.Stray { return m.from.strays[m.Addr] }
