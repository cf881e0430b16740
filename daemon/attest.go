package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// attest is gossip.Config.Attest: it finds out whether the node that asks is the one that the request is
// about, and whether the cluster has it.
func (d *Daemon) attest(ctx context.Context, r authority.Request) error {
	local, known := d.source.Local()
	if !known {
		return errors.New("the signer has not read the objects of its cluster yet")
	}
	return d.kube.attest(ctx, r, local)
}

func (k *kubernetes) attest(ctx context.Context, r authority.Request, local clustermesh.Local) error {
	return identifyListed(ctx, r, local, k.attested)
}

// identifyListed asks identify, a call of the API server, only about nodes that the cluster has.
func identifyListed(ctx context.Context, r authority.Request, local clustermesh.Local, identify func(context.Context, authority.Request, clustermesh.Local) error) error {
	if err := listed(r.Want.Node, local); err != nil {
		return err
	}
	return identify(ctx, r, local)
}

// listed returns an error unless the objects of the cluster say where a node is.
func listed(node clustermesh.NodeName, local clustermesh.Local) error {
	i := slices.IndexFunc(local.Nodes, func(n clustermesh.Node) bool { return n.Name == node })
	switch {
	case i < 0:
		return fmt.Errorf("no Node %s where the signer reads", node)
	case len(local.Nodes[i].Addresses) == 0:
		return fmt.Errorf("no address of Node %s where the signer reads", node)
	}
	return nil
}

// objects is gossip.Config.Objects.
func (d *Daemon) objects() (authority.Objects, bool) {
	local, known := d.source.Local()
	return holders(local), known
}

// holders returns what the objects of a cluster say of its nodes.
func holders(local clustermesh.Local) authority.Objects {
	out := authority.Objects{All: local.NodesKnown, ClusterIPs: local.ClusterIPs}
	for _, n := range local.Nodes {
		out.Nodes = append(out.Nodes, authority.Holder{
			Name: n.Name, Locality: n.Locality, Addresses: n.Addresses,
			PodCIDRs: n.Prefixes, Annotated: local.NodePrefixes[n.Name], Entry: local.NodeClusterIPs[n.Name],
		})
	}
	return out
}

// annotated finds out which node asks by the annotation of its Node object.
func annotated(r authority.Request, local clustermesh.Local) error {
	key := r.Want.Key.Fingerprint()
	switch stated := local.NodeKeys[r.Want.Node]; stated {
	case key:
		return nil
	case "":
		return fmt.Errorf("no annotation %s of Node %s: if the machine is what it says, set it to %s where the signer reads", clustermesh.AnnotationNodeKey, r.Want.Node, key)
	default:
		return fmt.Errorf("annotation %s of Node %s is %s where the signer reads, and the machine's key is %s", clustermesh.AnnotationNodeKey, r.Want.Node, stated, key)
	}
}

// attested finds out which node asks by the token that its kubelet got for its daemon.
func (k *kubernetes) attested(ctx context.Context, r authority.Request, _ clustermesh.Local) error {
	node, err := k.client.NodeOf(ctx, r.Token, k.namespace)
	if err == nil && node != r.Want.Node {
		err = fmt.Errorf("the token is used on node %s", node)
	}
	return err
}

// token returns a function that reads the token in a file; nil if there is none. The kubelet renews it.
func (k *kubernetes) token(file string) func() (string, error) {
	if file == "" {
		return nil
	}
	return func() (string, error) {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("authority.tokenFile: %w", err)
		}
		return strings.TrimSpace(string(b)), nil
	}
}
