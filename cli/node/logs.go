package node

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
)

const logsLong = `Show the last lines of a daemon's log, oldest first. Each daemon has about a thousand of them in
memory, back to its last start at most. For what it wrote before that, use kubectl logs --previous
or journalctl.

A time is ` + cli.Times + `.
Times are by the nodes' clocks, in your time zone.

With --node '*' all nodes of the cluster answer, and with several --context those of each cluster,
in the order of the times. A support bundle has the same lines: strait logs --file FILE.`

// logs is the data of strait logs.
type logs struct {
	api.Meta
	Logs []*api.LogList `json:"logs"`
	// Missing has why nodes did not answer.
	Missing []string `json:"missing,omitempty"`
}

// LogsCommand is strait logs.
func LogsCommand(a *cli.App) *cobra.Command {
	var since, level string
	c := cli.Wide(&cobra.Command{
		Use:   "logs",
		Short: "Show the last lines of daemons' logs",
		Long:  logsLong,
		Example: `  strait logs
  strait logs --context c1 --node n2 --since 10m
  strait logs --level warn --context c1 --context c2
  strait logs --file strait-20261129T140200Z.tar.gz --context c1`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var l slog.Level
			if err := l.UnmarshalText([]byte(level)); err != nil {
				return cli.UsageError("--level %q is none of debug, info, warn and error", level)
			}
			from, err := cli.When(since, a.Now())
			if err != nil {
				return err
			}
			return showLogs(cmd.Context(), a, from, l)
		},
	})
	c.Flags().SortFlags = false
	c.Flags().StringVar(&since, "since", "1h", "the first `time`")
	c.Flags().StringVar(&level, "level", "debug", "least important `level`: debug, info, warn or error")
	return c
}

func showLogs(ctx context.Context, a *cli.App, since time.Time, least slog.Level) error {
	all := logs{Meta: api.Meta{APIVersion: api.APIVersion, Kind: "Logs"}}
	err := all.ask(ctx, a)
	if err != nil {
		return err
	}
	for _, l := range all.Logs {
		l.Items = slices.DeleteFunc(l.Items, func(i api.LogLine) bool { return i.Time.Before(since) || below(i, least) })
	}
	var data any = all
	if len(all.Logs) == 1 && len(all.Missing) == 0 && a.From.Node != api.EveryNode && len(a.From.Each()) <= 1 {
		data = all.Logs[0] // as the daemon answers it
	}
	done, err := a.Data(data)
	if err != nil {
		return err
	}
	if !done {
		all.print(a)
	}
	if len(all.Logs) == 0 || len(all.Missing) > 0 {
		return cli.Exit(cli.ExitUnknown, nil)
	}
	return nil
}

// below reports whether a line is less important than a level. A line whose level is not known is
// not.
func below(i api.LogLine, least slog.Level) bool {
	var l slog.Level
	return l.UnmarshalText([]byte(i.Level)) == nil && l < least
}

// ask asks all nodes that the flags choose.
func (all *logs) ask(ctx context.Context, a *cli.App) error {
	q := question[api.LogList]{path: "logs", kind: api.KindLogs, one: (*client.Client).Logs, from: func(l *api.LogList) api.Viewpoint { return l.SeenFrom }}
	if len(a.From.Each()) <= 1 && a.From.Node != api.EveryNode {
		l, err := cli.Ask(ctx, a, q.one)
		if err == nil {
			all.Logs = []*api.LogList{l}
		}
		return err
	}
	answers := askEach(ctx, a, q)
	for _, x := range answers {
		if x.answer != nil {
			all.Logs = append(all.Logs, x.answer)
		}
	}
	all.Missing = missing(answers)
	return nil
}

func (all *logs) print(a *cli.App) {
	p := a.Printer()
	for _, l := range all.Logs {
		if l.Dropped > 0 && len(l.Items) > 0 {
			p.Line("%s %s/%s wrote %s before those that it has in memory", api.Warn, l.SeenFrom.Cluster, l.SeenFrom.Node, api.Count(int(l.Dropped), "line"))
		}
	}
	if lines := api.LinesOf(all.Logs); len(lines) > 0 {
		cli.Show(a, p, table.Logs, lines)
	} else if len(all.Logs) > 0 {
		a.Hint("no such line; ask for more with --since or --level")
	}
	for _, m := range all.Missing {
		p.Line("%s %s", api.Bad, m)
	}
}
