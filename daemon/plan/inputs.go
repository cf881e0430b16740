package plan

import (
	"net/netip"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
	"strait.io/strait/daemon/plan/mesh"
)

// Inputs is all that a plan is made from, besides the Past. A plan changes nothing in it, and
// nothing in it may change later: plans and their Pasts share its memory.
type Inputs struct {
	// State is what gossip holds: the records of all origins, and what this node sees of their
	// machines. The zero State is a clusterset of which nothing is known.
	State clustermesh.State
	// Self is the node to plan for, from the daemon's configuration and identity. It need not be
	// this machine's: a what-if plans for any node of the State. It must be set.
	Self Self
	// Config is the node's configuration, as far as plans depend on it. It does not change in the
	// life of a daemon. With the zero Config there is no mesh, the cluster allocates ClusterSetIPs
	// itself, and traffic neither spills nor ramps.
	Config Config
	// Now is the time of the plan, by this machine's clock. Ramps and drains follow it; it may go
	// back. The zero time is before every gradual drain.
	Now time.Time

	// Learning is true until gossip and the source have been read completely. What a plan then
	// lacks is unknown, not absent. So it is not a reason to ramp when a later plan has it, and a
	// node that gets something while another one that claims it is not known yet does not count as
	// having had it.
	Learning bool
	// Host is what the machine says of its links and addresses. The zero Host is a machine without
	// any; a machine that could not be read is Unknown.
	Host Host
	// Device has the peers that the WireGuard device had before the first plan, so that a restart
	// of the daemon changes no owner. It counts only with a zero Past. Nil if there was no device.
	Device []Had

	// Far is how far away clusters are that are not among the nearest, in steps of measured round
	// trips; a cluster that is not in it is near. It counts only if Config has no costs. Nil if all
	// are alike, or it is not known.
	Far map[clustermesh.ClusterName]uint32
	// Faults are the nodes whose tunnels do not carry what they should, and what is wrong, as this
	// node's probes found. Nil if no fault is known.
	Faults map[clustermesh.Origin]Fault

	// Remotes are other clusters' pod ranges, from pins, that packets leave for through tunnels
	// only. What of them no tunnel leads to is unreachable, so that nothing for a node that is gone
	// leaves in clear by another route. Nil if the mesh is not strict.
	Remotes []Remote
	// ClusterIPs are the ranges in which this cluster has ClusterIPs, sorted, from its objects. No
	// prefix of another cluster is routed that is for ClusterIPs and overlaps them. Nil if they are
	// not known.
	ClusterIPs []netip.Prefix
	// Guests are the machines outside every cluster that have a pin, sorted by name, from the file
	// of peers. Nil if there are none.
	Guests []Guest
}

// Self is the node for which the plan is made.
type Self struct {
	Cluster clustermesh.ClusterName
	Node    clustermesh.NodeName
}

// Origin returns the node as a writer of records.
func (s Self) Origin() clustermesh.Origin {
	return clustermesh.Origin{Cluster: s.Cluster, Node: s.Node}
}

// Config is what a plan depends on besides the state.
type Config struct {
	// CIDRs are the ranges for ClusterSetIPs, at most one of each IP family. There are none if the
	// cluster allocates them itself, by derived Services: then its Allocations are used as they
	// are.
	CIDRs []netip.Prefix
	// Barred namespaces have no imports here.
	Barred clustermesh.Barred
	// Mesh is false if pods of other clusters are routable without strait.
	Mesh bool
	// Topology says which way packets travel through the mesh. Nil is topology.Default.
	Topology topology.Topology
	Locality Locality
}

// Fault is what is wrong with the tunnel to a node; see locality.Candidate.
type Fault struct {
	Why      string
	Impaired bool
}

// What only the mesh is made from has its types in package mesh; callers need this package alone.
type (
	// Host is what a plan must know about the machine that it is made for.
	Host = mesh.Host
	// Had is a peer that the WireGuard device had before the first plan.
	Had = mesh.Had
	// Remote is a range of addresses that only pods of another cluster have.
	Remote = mesh.Remote
	// Guest is a machine outside every cluster for which this cluster has a pin.
	Guest = mesh.Guest
)
