package trustlevel

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/problem"
)

// openGrace is how long a lone cluster may have no keys: its leader makes them.
const openGrace = 3 * time.Minute

// Open is what decides whether to warn that every holder of the gossip key is trusted.
type Open struct {
	Config
	// TrustsAll is whether every holder of the gossip key is trusted, and Pinned whether pins are in force.
	TrustsAll, Pinned bool
	// Known is how many clusters are pinned, this one among them.
	Known int
	// Kubernetes is whether the cluster has an API server, and Age how long the daemon has been running.
	Kubernetes bool
	Age        time.Duration
	Company
}

// Company is which other nodes and clusters there are.
type Company struct {
	// Seeds is whether there are seeds, and Nodes whether there is a record of another node.
	Seeds, Nodes bool
	// Unpinned are the clusters that are not pinned, and Unsigned the live nodes that do not
	// sign yet, sorted.
	Unpinned, Unsigned []string
	// Outside are prefixes of this cluster's nodes that its own pin does not allow.
	Outside []string
}

// Problems warns that every holder of the gossip key is trusted, unless that is configured, or the node
// is alone.
func (o Open) Problems(own clustermesh.ClusterName) []clustermesh.Problem {
	alone := !o.Seeds && len(o.Unpinned) == 0
	switch {
	case o.Off || !o.TrustsAll:
		return nil
	case alone && !o.Kubernetes && !o.Nodes, alone && o.Later && o.Age < openGrace:
		return nil
	}
	why, try := o.why()
	return []clustermesh.Problem{problem.Cluster(string(own)).Problem(clustermesh.Problem{
		Code: problem.EverybodyTrusted, Field: "authority", Warning: true,
		Message: "every holder of the gossip key is trusted, whatever cluster or node it claims to be: " + why,
		Try:     try + "; or, if that is what you want, set authority.mode: off",
	})}
}

func (o Open) why() (why, try string) {
	connect := "pin the clusters with strait clusterset connect, with the contexts of all"
	if !o.Kubernetes {
		connect = "make keys with strait clusterset init, and invite the other clusters (docs/standalone.md)"
	}
	switch {
	case !o.Signs:
		return "this cluster has neither keys nor pins", connect
	case !o.Config.Pins:
		return "this cluster signs its records, and pins no cluster", "set authority.pinsFile, as strait clusterset init prints it"
	case o.All:
		return "authority.believe is all", "remove that when all clusters sign"
	case !o.Pinned && len(o.Unpinned) == 0 && !o.Seeds:
		return "this cluster has no keys yet, which its leader makes", "look at the pods of strait-leader, or make them with strait clusterset connect"
	case !o.Pinned:
		return "this cluster has no pins yet", connect
	case o.Seeds && o.Known == 1:
		return "other clusters are joined (gossip.seeds), and none of them is pinned", connect
	case len(o.Unpinned) > 0:
		return fmt.Sprintf("%s not pinned", isOrAre(o.Unpinned)), connect
	case len(o.Unsigned) > 0:
		return fmt.Sprintf("%s not signed yet", isOrAre(o.Unsigned)), "upgrade the daemons there"
	case len(o.Outside) > 0:
		return fmt.Sprintf("%s not in the pinned pods of this cluster", isOrAre(o.Outside)), "pin its ranges with strait clusterset connect --pods"
	}
	return "the ConfigMap strait-believe is not set to pinned", connect
}

// isOrAre lists a few names with the verb.
func isOrAre(names []string) string {
	verb := " is"
	if len(names) > 1 {
		verb = " are"
	}
	if more := len(names) - 3; more > 0 {
		return fmt.Sprintf("%s and %d more are", strings.Join(names[:3], ", "), more)
	}
	return strings.Join(names, ", ") + verb
}

// CompanyOf returns the company of a node. Listed are the pins in force, whether or not they restrict trust.
func CompanyOf(own clustermesh.Origin, s clustermesh.State, listed authority.Pins, sealed map[clustermesh.Origin]bool) (c Company) {
	for o := range s.Records.All() {
		if o.Node != "" && o != own {
			c.Nodes = true
		}
		if _, pinned := listed[o.Cluster]; !pinned && o.Cluster != own.Cluster {
			c.Unpinned = append(c.Unpinned, string(o.Cluster))
		}
		if there := o == own || o.Node == "" || s.Contacts.Get(o).Heard(); there && !sealed[o] {
			c.Unsigned = append(c.Unsigned, o.String())
		}
	}
	slices.Sort(c.Unpinned)
	c.Unpinned = slices.Compact(c.Unpinned)
	slices.Sort(c.Unsigned)
	return c
}
