package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// attest is gossip.Config.Attest: it verifies that the requester is the node that the request is
// about, and that the cluster has it.
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
	if err := authority.Listed(r.Want.Node, local); err != nil {
		return err
	}
	return identify(ctx, r, local)
}

// objects is gossip.Config.Objects.
func (d *Daemon) objects() (authority.Objects, bool) {
	local, known := d.source.Local()
	return authority.ObjectsOf(local), known
}

// attested authenticates the requester by the token that its kubelet got for its daemon.
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
