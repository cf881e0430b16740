package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
)

// attest is gossip.Config.Attest: it states what the cluster's objects say of a node, if the node that
// asks is the one that the request is about.
func (d *Daemon) attest(ctx context.Context, r authority.Request) (authority.Statement, error) {
	local, known := d.source.Local()
	if !known {
		return authority.Statement{}, errors.New("the signer has not read the objects of its cluster yet")
	}
	identify := annotated
	if d.kube != nil {
		identify = d.kube.attested
	}
	if err := identify(ctx, r, local); err != nil {
		return authority.Statement{}, err
	}
	return certify(r, local, d.gossip.Trust(), time.Now())
}

// annotated finds out which node asks by the annotation of its Node object.
func annotated(_ context.Context, r authority.Request, local clustermesh.Local) error {
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

// certify returns the statement about a node that was identified.
func certify(r authority.Request, local clustermesh.Local, t gossip.Trust, now time.Time) (authority.Statement, error) {
	i := slices.IndexFunc(local.Nodes, func(n clustermesh.Node) bool { return n.Name == r.Want.Node })
	switch {
	case i < 0:
		return authority.Statement{}, fmt.Errorf("no Node %s where the signer reads", r.Want.Node)
	case len(local.Nodes[i].Addresses) == 0:
		return authority.Statement{}, fmt.Errorf("no address of Node %s where the signer reads", r.Want.Node)
	}
	known := authority.Known{Node: local.Nodes[i], Pods: t.Listed[r.Want.Cluster].Pods}
	known.Prefixes = slices.Concat(known.Prefixes, local.NodePrefixes[r.Want.Node], local.NodeClusterIPs[r.Want.Node])
	for _, n := range local.Nodes {
		if n.Name != r.Want.Node {
			known.Others = slices.Concat(known.Others, n.Prefixes, local.NodePrefixes[n.Name], local.NodeClusterIPs[n.Name])
		}
	}
	for o, s := range t.Statements {
		if o.Cluster == r.Want.Cluster && o.Node != r.Want.Node {
			known.Others = append(known.Others, s.Prefixes...)
		}
	}
	return authority.Certify(r.Want, known, now), nil
}
