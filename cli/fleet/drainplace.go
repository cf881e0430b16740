package fleet

import (
	"context"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/install/cluster"
)

// drainPlace is where the drain of one cluster is stored, and a daemon of that cluster.
type drainPlace interface {
	// whatIf asks the daemon what a drain of the cluster with this id would do.
	whatIf(ctx context.Context, id string) (*api.WhatIf, error)
	// write drains the cluster, or ends that if the value is empty, and returns where. It refuses
	// the id of another cluster than that of the place.
	write(ctx context.Context, id, value string) (where string, err error)
	// counts reports whether strait cluster status can count what is still open.
	counts() bool
}

// namespaced is the place of a cluster in Kubernetes: an annotation of strait's Namespace.
type namespaced struct{ *cluster.Cluster }

func (n namespaced) whatIf(ctx context.Context, id string) (*api.WhatIf, error) {
	return n.WhatIf(ctx, "drain "+id)
}

func (n namespaced) write(ctx context.Context, id, value string) (string, error) {
	switch own, err := n.ID(ctx); {
	case err != nil:
		return "", err
	case own != id:
		return "", cli.UsageError("context %s is cluster %q, not %q", n.Context, own, id)
	}
	if err := n.AnnotateNamespace(ctx, clustermesh.AnnotationDrain, value); err != nil {
		return "", err
	}
	return "annotation " + clustermesh.AnnotationDrain + " of Namespace " + n.Namespace, nil
}

func (namespaced) counts() bool { return true }

// manifests is the place of a cluster outside Kubernetes: a directory of YAML. The daemon is that
// of this machine.
type manifests struct {
	dir string
	app *cli.App
}

func (m manifests) whatIf(ctx context.Context, id string) (*api.WhatIf, error) {
	return cli.AskHere(ctx, m.app, func(c *client.Client, ctx context.Context) (*api.WhatIf, error) {
		return c.WhatIf(ctx, "drain "+id, "", "")
	})
}

// write asks the daemon whose cluster this is only to drain: the file says what it drains.
func (m manifests) write(ctx context.Context, id, value string) (string, error) {
	if value != "" {
		status, err := cli.AskHere(ctx, m.app, (*client.Client).Status)
		if err != nil {
			return "", err
		}
		if status.Cluster != id {
			return "", cli.UsageError("this machine is in cluster %q; drain %q on a machine of that cluster", status.Cluster, id)
		}
	}
	return drainFile(m.dir), drainInDir(m.dir, id, value)
}

func (manifests) counts() bool { return false }

// drainable are the flags that name a place.
type drainable struct {
	target
	context string
	dir     string // of YAML, outside Kubernetes
}

func (d *drainable) flag(c *cobra.Command) {
	c.Flags().StringVar(&d.context, "context", "", "`name` of the kubeconfig context (default: the current one)")
	c.Flags().StringVar(&d.dir, "manifest", "", "outside Kubernetes: the `directory` of YAML (source.manifest)")
	d.target.flags(c)
}

// at does something at the place that the flags name, before --timeout.
func (d *drainable) at(ctx context.Context, a *cli.App, do func(context.Context, drainPlace) error) error {
	if d.dir != "" {
		return d.within(ctx, func(ctx context.Context) error { return do(ctx, manifests{d.dir, a}) })
	}
	c, err := d.open(d.context)
	if err != nil && d.dryRun {
		return unknown(err)
	}
	if err != nil {
		return err
	}
	return d.within(ctx, func(ctx context.Context) error { return do(ctx, namespaced{c}) })
}
