package node

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// versionAnswer is the data of strait version.
type versionAnswer struct {
	api.Meta
	Client cli.ClientVersion `json:"client"`
	// Daemon is absent when it cannot be asked; DaemonError is why.
	Daemon      string `json:"daemon,omitempty"`
	DaemonError string `json:"daemonError,omitempty"`
}

func VersionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the versions of strait and straitd",
		Long:              "Print the version of this program and, if it answers, of straitd on this node.",
		Example:           "  strait version\n  strait version -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer := versionAnswer{Meta: api.Meta{APIVersion: api.APIVersion, Kind: "Version"}, Client: a.ThisVersion()}
			status, err := cli.Ask(cmd.Context(), a, func(c *client.Client, ctx context.Context) (*api.Status, error) {
				ctx, cancel := context.WithTimeout(ctx, cli.CompletionTimeout)
				defer cancel()
				return c.Status(ctx)
			})
			if err == nil {
				answer.Daemon = status.Version
			} else {
				answer.DaemonError = err.Error()
			}
			if done, err := a.Data(answer); done {
				return err
			}
			printVersion(a, answer, err)
			return nil
		},
	}
}

func printVersion(a *cli.App, v versionAnswer, err error) {
	p := a.Printer()
	p.Line("strait   %s (%s, %s %s)", v.Client.Version, cmp.Or(v.Client.Revision, "no revision"), v.Client.Go,
		v.Client.Platform)
	var failure *api.Failure
	switch {
	case err == nil:
		p.Line("straitd  %s", v.Daemon)
	case errors.As(err, &failure):
		p.Line("straitd  %s", api.None)
		a.Hint("%s", cli.Clean(failure.Message))
	}
}
