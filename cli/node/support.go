package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/support"
)

// bundleTimeout bounds what is asked of one cluster.
const bundleTimeout = 2 * time.Minute

const bundleLong = `Write a file with what the daemons know now: the status, services, nodes, members, policies,
pinned machines and flows as each node sees them, what it noted, and the last lines of its log. Who
gets the file queries it with --file, as if the clusters were there: strait status --file FILE.

It has names, addresses and public keys. It has no secret: daemons give none in their answers. What
is not answered within two minutes is left out, and the file has the reason.`

// SupportCommand is strait support.
func SupportCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "support",
		Short:   "Keep what daemons know in a file, for people who look later or elsewhere",
		Long:    "Keep what daemons know in a file, for people who look later or elsewhere.",
		Example: "  strait support bundle --context c1 --context c2\n  strait support bundle before.tar.gz\n  strait status --file before.tar.gz",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	bundle := &cobra.Command{
		Use:   "bundle [FILE]",
		Short: "Write a support bundle",
		Long:  bundleLong,
		Example: "  strait support bundle                               # by the daemon on this node\n" +
			"  strait support bundle --context c1 --context c2     # of two clusters, from anywhere\n" +
			"  strait explain shop/cart --file strait-20261129T140200Z.tar.gz --context c1",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := a.Now().UTC().Format("strait-20060102T150405Z.tar.gz")
			if len(args) > 0 {
				name = args[0]
			}
			return makeBundle(cmd.Context(), a, name)
		},
	}
	a.AskFlags(bundle)
	cmd.AddCommand(bundle)
	return cmd
}

func makeBundle(ctx context.Context, a *cli.App, name string) error {
	if a.From.Node != "" {
		return cli.UsageError("a bundle is of all nodes of a cluster: leave --node out")
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return cli.UsageError("%s exists already: name another file", name)
	}
	b := support.New(a.Now(), a.ThisVersion().Version)
	var failed error
	p := a.Printer()
	each := a.From.Each()
	if len(each) == 0 {
		each = []string{""}
	}
	for _, context := range each {
		if err := collect(ctx, a, b, context); err != nil {
			message, try := cli.Explained(err)
			p.Line("%s %s", api.Bad, message)
			if try != "" {
				p.Line("  try  %s", try)
			}
			failed = err
		}
	}
	for _, c := range b.Clusters {
		for _, what := range slices.Sorted(maps.Keys(c.Missing)) {
			p.Line("%s cluster %s, %s: %s", api.Warn, c.Name, what, c.Missing[what])
		}
	}
	if len(b.Clusters) == 0 {
		return cli.Exit(cli.ExitUnknown, nil)
	}
	if err := write(b, name); err != nil {
		return err
	}
	answers, bytes := b.Size()
	p.Line("wrote %s: %s of %s, %d kB before compression", name, api.Count(answers, "answer"), api.Count(len(b.Clusters), "cluster"), (bytes+999)/1000)
	p.Line("look at it: strait status --file %s", name)
	if failed != nil || b.Missing() > 0 {
		return cli.Exit(cli.ExitUnknown, nil)
	}
	return nil
}

// collect adds what the daemons of one context answer; without a name, of the one that the flags
// choose.
func collect(ctx context.Context, a *cli.App, b *support.Bundle, name string) error {
	ctx, cancel := context.WithTimeout(ctx, bundleTimeout)
	defer cancel()
	one := *a
	if name != "" {
		one = a.Only(name)
	}
	c, err := one.Way(ctx)
	if err != nil {
		return err
	}
	return b.Collect(ctx, c, name)
}

// write makes the file, readable by its owner alone. A file that could not be written whole does
// not stay.
func write(b *support.Bundle, name string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(b.Write(file), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, errors.Join(err, os.Remove(name)))
	}
	return nil
}
