package authority

import (
	"fmt"
	"slices"

	"strait.io/strait/clustermesh"
)

// Listed returns an error unless the cluster's objects have an address of the node.
func Listed(node clustermesh.NodeName, local clustermesh.Local) error {
	i := slices.IndexFunc(local.Nodes, func(n clustermesh.Node) bool { return n.Name == node })
	switch {
	case i < 0:
		return fmt.Errorf("no Node %s where the signer reads", node)
	case len(local.Nodes[i].Addresses) == 0:
		return fmt.Errorf("no address of Node %s where the signer reads", node)
	}
	return nil
}

// ObjectsOf returns a cluster's nodes as its objects describe them.
func ObjectsOf(local clustermesh.Local) Objects {
	out := Objects{All: local.NodesKnown, ClusterIPs: local.ClusterIPs}
	for _, n := range local.Nodes {
		out.Nodes = append(out.Nodes, Holder{
			Name: n.Name, Locality: n.Locality, Addresses: n.Addresses,
			PodCIDRs: n.Prefixes, Annotated: local.NodePrefixes[n.Name], Entry: local.NodeClusterIPs[n.Name],
		})
	}
	return out
}

// Annotated authenticates the requester by the annotation of its Node object.
func Annotated(r Request, local clustermesh.Local) error {
	key := r.Want.Key.Fingerprint()
	switch stated := local.NodeKeys[r.Want.Node]; stated {
	case key:
		return nil
	case "":
		return fmt.Errorf("no annotation %s of Node %s: if the machine is the one it claims to be, set it to %s where the signer reads", clustermesh.AnnotationNodeKey, r.Want.Node, key)
	default:
		return fmt.Errorf("annotation %s of Node %s is %s where the signer reads, and the machine's key is %s", clustermesh.AnnotationNodeKey, r.Want.Node, stated, key)
	}
}
