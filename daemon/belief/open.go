package belief

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/problem"
)

// openGrace is how long a cluster that is alone may have no keys: its leader makes them.
const openGrace = 3 * time.Minute

// Open is what it takes to say that everybody who has the gossip key is believed.
type Open struct {
	Config
	// TrustsAll is whether everybody is believed, and Pinned whether there are pins in force.
	TrustsAll, Pinned bool
	// Known is how many clusters are pinned, this one among them.
	Known int
	// Kubernetes is whether the cluster has an API server, and Age how long the daemon has been running.
	Kubernetes bool
	Age        time.Duration
	Company
}

// Company is who else is there.
type Company struct {
	// Seeds is whether there are seeds, and Nodes whether there is a record of another node.
	Seeds, Nodes bool
	// Unpinned are the clusters that are not pinned, and Unsigned the nodes that are heard and do not
	// sign yet, sorted.
	Unpinned, Unsigned []string
	// Outside are prefixes of this cluster's nodes that its pins do not let them have.
	Outside []string
}

// Problems reports that everybody is believed; nothing if that was asked for, or nobody else is there.
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
		Code: problem.EverybodyBelieved, Field: "authority", Warning: true,
		Message: "whoever has the gossip key is believed, whatever cluster or node it says it is: " + why,
		Try:     try + "; if that is what you want, say so: authority.mode: off",
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
		return "this cluster signs what it says, and pins none", "set authority.pinsFile, as strait clusterset init says"
	case o.All:
		return "authority.believe says all", "remove that when all clusters sign"
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
	return "the ConfigMap strait-believe does not say pinned", connect
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

// CompanyOf returns who else is there. Listed are the pins that are in force, whether or not they count.
func CompanyOf(own clustermesh.Origin, s clustermesh.State, listed authority.Pins, sealed map[clustermesh.Origin]bool) (c Company) {
	for o := range s.Records {
		if o.Node != "" && o != own {
			c.Nodes = true
		}
		if _, pinned := listed[o.Cluster]; !pinned && o.Cluster != own.Cluster {
			c.Unpinned = append(c.Unpinned, string(o.Cluster))
		}
		if there := o == own || o.Node == "" || s.Contacts[o] == clustermesh.Alive; there && !sealed[o] {
			c.Unsigned = append(c.Unsigned, o.String())
		}
	}
	slices.Sort(c.Unpinned)
	c.Unpinned = slices.Compact(c.Unpinned)
	slices.Sort(c.Unsigned)
	return c
}
