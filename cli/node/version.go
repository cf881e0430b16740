package node

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

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
	// Daemons are those of the clusters that were asked; missing if only the one on this node was.
	Daemons []daemonVersion `json:"daemons,omitempty"`
}

// daemonVersion is the version of the daemon of a node, as CLUSTER/NODE, or why it is not known.
type daemonVersion struct {
	Node    string `json:"node"`
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"`
}

func VersionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of strait and straitd",
		Long: "Print the version of this program and, if it answers, of straitd on this node. With --context, which\n" +
			"can be repeated, print those of all daemons of these clusters, and whether they differ.",
		Example:           "  strait version\n  strait version --context c1 --context c2\n  strait version -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer := versionAnswer{Meta: api.Meta{APIVersion: api.APIVersion, Kind: "Version"}, Client: a.ThisVersion()}
			if len(a.From.Each()) > 0 || a.From.Kubeconfig != "" || a.From.Node == api.EveryNode {
				return versions(cmd.Context(), a, answer)
			}
			ask := cli.AskHere[*api.Status]
			if a.From.Node != "" {
				ask = cli.Ask[*api.Status]
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), cli.CompletionTimeout)
			defer cancel()
			status, err := ask(ctx, a, (*client.Client).Status)
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
	printClient(p, v)
	var failure *api.Failure
	switch {
	case err == nil:
		p.Line("straitd  %s", v.Daemon)
	case errors.As(err, &failure):
		p.Line("straitd  %s", api.None)
		a.Hint("%s", cli.Clean(failure.Message))
	}
}

// versions prints the versions of all daemons of the clusters that the flags choose. If some did
// not answer, its error has the exit code and no text.
func versions(ctx context.Context, a *cli.App, answer versionAnswer) error {
	of := map[string][]string{}
	unknown := false
	for _, s := range askEvery(ctx, a) {
		d := daemonVersion{Node: s.name(), Error: s.why()}
		if s.Status != nil {
			d.Version = s.Status.Version
			of[d.Version] = append(of[d.Version], d.Node)
		}
		unknown = unknown || d.Error != ""
		answer.Daemons = append(answer.Daemons, d)
	}
	done, err := a.Data(answer)
	if err != nil {
		return err
	}
	if !done {
		printVersions(a, answer, of)
	}
	if unknown {
		return cli.Exit(cli.ExitUnknown, nil)
	}
	return nil
}

func printVersions(a *cli.App, v versionAnswer, of map[string][]string) {
	p := a.Printer()
	printClient(p, v)
	for _, version := range slices.Sorted(maps.Keys(of)) {
		nodes := of[version]
		p.Line("straitd  %s on %s: %s", version, api.Count(len(nodes), "node"), cli.Some(nodes, cli.MostNamed))
	}
	for _, d := range v.Daemons {
		if d.Error != "" {
			p.Line("%s %s: %s", api.Bad, d.Node, d.Error)
		}
	}
	switch _, same := of[v.Client.Version]; {
	case len(of) > 1:
		p.Line("%s the daemons have %d versions: strait upgrade --context NAME gives all daemons of a cluster this program's", api.Warn, len(of))
	case len(of) == 1 && !same:
		p.Line("%s the daemons have another version than this program", api.Warn)
	}
}

func printClient(p cli.Printer, v versionAnswer) {
	p.Line("strait   %s (%s, %s %s)", v.Client.Version, cmp.Or(v.Client.Revision, "no revision"), v.Client.Go,
		v.Client.Platform)
}
