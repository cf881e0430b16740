package topology

import (
	"slices"

	"strait.io/strait/clustermesh"
)

// meshed is how many nodes a clusterset has at most where each daemon keeps a stream to each other
// one. There, relays would save little, and a record would take two or three ways instead of one.
const meshed = 20

// Default returns the topology of the daemons: each of them must have the same.
func Default() Topology { return Sized{} }

// Sized is FullMesh in a small clusterset, and Relays in a larger one. Daemons that count
// differently for a moment serve each other as guests.
type Sized struct{ FullMesh }

var _ Topology = Sized{}

// Ways implements Topology.
func (Sized) Ways(v View) Ways { return v.sized().Ways(v) }

// Relays implements Topology.
func (Sized) Relays(v View) []clustermesh.Origin { return v.sized().Relays(v) }

func (v View) sized() Topology {
	nodes := len(v.Members)
	if !slices.Contains(v.Members, v.Self) {
		nodes++
	}
	if max(v.Known, nodes) <= meshed {
		return FullMesh{}
	}
	return Relays{}
}
