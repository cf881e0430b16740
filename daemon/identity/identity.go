// Package identity decides which cluster and node a daemon is, and notices when that changes.
//
// Inputs are the config, the API server's objects, and the identity of the daemon's last run; outputs
// are the identity or what it waits for, and Problems. Pure. It must not know how an API server is read
// or where an identity is kept.
package identity

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/internal/problem"
)

// Who is this node's identity, as other nodes know it.
type Who struct {
	Cluster clustermesh.ClusterName `json:"cluster"`
	// UID distinguishes clusters of the same name. It is empty if the cluster has no API server.
	UID string `json:"uid,omitempty"`
	// Advertise is the address that other nodes dial.
	Advertise netip.AddrPort `json:"advertise"`
}

// Config is the part of the daemon's config about its identity.
type Config struct {
	// Cluster is the cluster's id, if it does not come from the API server, and Node the name of the
	// Node object.
	Cluster, Node string
	// Advertise is the address that other nodes dial, if the config has it. Otherwise it is the Node's
	// first address with Port.
	Advertise netip.AddrPort
	Port      uint16
}

// Decide determines this node's identity from the API server's objects. If they are not available
// and patient is true, it is last, the identity of the daemon's last run. Waiting names what is missing;
// it is empty if nothing is. An error is a mistake that waiting does not fix.
func Decide(c Config, id object.Identity, last Who, patient bool) (w Who, waiting string, err error) {
	if w.Advertise = c.Advertise; !w.Advertise.IsValid() && id.Node.IsValid() {
		w.Advertise = netip.AddrPortFrom(id.Node, c.Port)
	}
	w.UID = id.UID
	if id.Read {
		if w.Cluster, err = clusterName(c.Cluster, id.Property); err != nil {
			return Who{}, "", err
		}
	}
	switch {
	case w.UID == "":
		waiting = "the UID of Namespace kube-system, from the API server"
	case !id.Read:
		waiting = "ClusterProperty cluster.clusterset.k8s.io, from the API server"
	case w.Cluster == "":
		waiting = "the cluster's id: create ClusterProperty cluster.clusterset.k8s.io, or set cluster in the config"
	case !w.Advertise.IsValid():
		waiting = fmt.Sprintf("an address of Node %q: if that is not this machine, set node in the config, otherwise set gossip.advertise", c.Node)
	default:
		return w, "", nil
	}
	if patient && last.Cluster != "" && (c.Cluster == "" || string(last.Cluster) == c.Cluster) && !id.Read {
		if c.Advertise.IsValid() {
			last.Advertise = c.Advertise
		}
		return last, "", nil
	}
	return Who{}, waiting, nil
}

// clusterName returns the cluster's id, from the config or its ClusterProperty; empty if neither
// has it.
func clusterName(config, property string) (clustermesh.ClusterName, error) {
	if config != "" && property != "" && config != property {
		return "", fmt.Errorf("cluster: is %q in the config, but ClusterProperty cluster.clusterset.k8s.io says %q: make them the same, or leave cluster out of the config", config, property)
	}
	if config != "" || property == "" {
		return clustermesh.ClusterName(config), nil
	}
	if msgs := validation.IsDNS1123Label(property); len(msgs) > 0 {
		return "", fmt.Errorf("ClusterProperty cluster.clusterset.k8s.io: spec.value: %q cannot be part of a DNS name: %s", property, msgs[0])
	}
	return clustermesh.ClusterName(property), nil
}

// Problems reports an API server that now gives another identity. A cluster's id must not
// change while it is a member of the clusterset.
func Problems(c Config, now Who, id object.Identity) []clustermesh.Problem {
	if !id.Read || id.UID == "" {
		return nil
	}
	p := problem.Cluster(string(now.Cluster)).Problem(clustermesh.Problem{Code: problem.ClusterIdentityChanged, Try: "undo the change, or restart strait's daemons on all nodes of the cluster to leave under the old identity and join under the new"})
	switch name, err := clusterName(c.Cluster, id.Property); {
	case err != nil:
		p.Message = err.Error() + "; the daemon continues as " + string(now.Cluster)
	case name != now.Cluster && name != "":
		p.Message = fmt.Sprintf("its id is now %q; the daemon continues as %s", name, now.Cluster)
	case id.UID != now.UID:
		p.Message = fmt.Sprintf("the API server now belongs to another cluster: its UID is %s, and was %s", id.UID, now.UID)
	default:
		return nil
	}
	return []clustermesh.Problem{p}
}
