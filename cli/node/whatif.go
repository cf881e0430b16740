package node

import (
	"context"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// whatIf shows where connections would go after a change.
func whatIf(ctx context.Context, a *cli.App, change, service, from string) error {
	answer, err := cli.Ask(ctx, a, func(c *client.Client, ctx context.Context) (*api.WhatIf, error) {
		return c.WhatIf(ctx, change, service, from)
	})
	if err != nil {
		return err
	}
	p, done, err := a.Begin(answer, answer.SeenFrom)
	if done {
		return err
	}
	a.ShowWhatIf(p, answer, service != "")
	return nil
}
