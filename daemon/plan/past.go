package plan

import (
	"reflect"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
	"strait.io/strait/daemon/plan/mesh"
)

// Past is what a plan hands on to the next plan of the same node. Only plans can read it. The zero
// Past is a fresh start. Planning does not change a Past, so that any number of plans can follow
// from one, also at the same time; those with the same Inputs are the same. A Past of another node
// or another configuration counts as a fresh start.
//
// Part of it decides what the next plan says:
//   - the endpoints' shares of each service, so that traffic returns to near endpoints by a ramp, and not
//     all at once;
//   - when services that ramp or drain are due, so that a turn that is a little late does not slow them
//     down;
//   - what each node and guest got of what others claim too: keys, underlay addresses, prefixes. Who has
//     something keeps it;
//   - what the WireGuard device had before the first plan and no plan has given to a node yet;
//   - the mesh, for as long as the machine's addresses cannot be read;
//   - the number of the plan, which is the Version of the services that it planned.
//
// The rest is only for speed: what the last plan worked out, with what it was worked out from. A
// plan repeats only the work whose inputs have changed, and returns the same memory for the rest.
type Past struct{ *memory }

// memory is the content of a Past. What its fields point to is immutable.
type memory struct {
	self      Self
	config    Config
	serial    uint64 // number of the plan
	stand     *stand
	noted     noted
	index     index
	merged    merged
	shares    shares
	mesh      mesh.Past
	tunnels   tunnels
	owned     owned
	moving    moving
	imports   []*Import
	globals   []*Global
	frontends frontends
}

// stand is the node and its location. Services planned from the same location share a stand.
type stand struct {
	self  Self
	where locality.Self
	far   map[clustermesh.ClusterName]uint32
}

// planner makes one plan. Its memory begins as a copy of that of the last plan.
type planner struct {
	Inputs
	memory
}

// after returns a planner that follows a Past.
func after(past Past, in Inputs) *planner {
	p := &planner{Inputs: in}
	if past.memory != nil && past.self == in.Self && reflect.DeepEqual(past.config, in.Config) {
		p.memory = *past.memory
	} else {
		p.memory = memory{self: in.Self, config: in.Config}
	}
	p.serial++
	return p
}
