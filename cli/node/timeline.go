package node

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
)

const timelineLong = `Show what changed and why, as this node noted it: machines and clusters that came and went, pods,
exports, drains, tunnels, and what became of connections. What has one cause is one row. NAME is a
service, a cluster or a node, and limits it to what is about that.

A time is ` + cli.Times + `.
Times are by the nodes' clocks, in your time zone.

With --node '*' all nodes of the cluster answer, and with several --context those of each cluster:
what several nodes noted of one thing is one row. -o wide shows the other causes, and -o json all
that was noted. strait explain --at shows where connections went at one of these times.`

// timeline is the data of strait timeline.
type timeline struct {
	api.Meta
	Histories []*api.History `json:"histories"`
	Events    []*api.Event   `json:"events"`
	// Missing has why nodes did not answer.
	Missing []string `json:"missing,omitempty"`
}

func TimelineCommand(a *cli.App) *cobra.Command {
	var since, until string
	c := cli.Wide(&cobra.Command{
		Use:   "timeline [NAME]",
		Short: "Show what changed and why",
		Long:  timelineLong,
		Example: `  strait timeline
  strait timeline shop/cart --since 14:00 --until 14:10
  strait timeline us-west/n4 --node '*' -o wide`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.CompleteService,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := historyQuery(since, until, args, a.Now())
			if err != nil {
				return err
			}
			return showTimeline(cmd.Context(), a, q)
		},
	})
	c.Flags().SortFlags = false
	c.Flags().StringVar(&since, "since", "1h", "the first `time`")
	c.Flags().StringVar(&until, "until", "", "the last `time` (default: now)")
	return c
}

func historyQuery(since, until string, args []string, now time.Time) (q api.HistoryQuery, err error) {
	if q.Since, err = cli.When(since, now); err != nil {
		return q, err
	}
	if until != "" {
		if q.Until, err = cli.When(until, now); err != nil {
			return q, err
		}
		if q.Until.Before(q.Since) {
			return q, cli.UsageError("--until %s is before --since %s", until, since)
		}
	}
	if len(args) > 0 {
		q.Name = args[0]
	}
	return q, nil
}

func showTimeline(ctx context.Context, a *cli.App, q api.HistoryQuery) error {
	t := timeline{Meta: api.Meta{APIVersion: api.APIVersion, Kind: "Timeline"}}
	if err := t.ask(ctx, a, q); err != nil {
		return err
	}
	t.group()
	done, err := a.Data(t)
	if err != nil {
		return err
	}
	if !done {
		t.print(a, q)
	}
	if len(t.Histories) == 0 || len(t.Missing) > 0 {
		return cli.Exit(cli.ExitUnknown, nil)
	}
	return nil
}

// ask asks all nodes that the flags choose.
func (t *timeline) ask(ctx context.Context, a *cli.App, q api.HistoryQuery) error {
	question := askHistory(q)
	if len(a.From.Each()) <= 1 && a.From.Node != api.EveryNode {
		h, err := cli.Ask(ctx, a, question.one)
		if err == nil {
			t.Histories = []*api.History{h}
		}
		return err
	}
	t.add(askEach(ctx, a, question), q)
	return nil
}

// askHistory asks what changed.
func askHistory(q api.HistoryQuery) question[api.History] {
	return question[api.History]{kind: api.KindHistory, from: func(h *api.History) api.Viewpoint { return h.SeenFrom },
		one: func(c *client.Client, ctx context.Context) (*api.History, error) { return c.History(ctx, q) },
		every: func(c *client.Client, ctx context.Context) (*api.NodeAnswerList, error) {
			return c.EveryHistory(ctx, q)
		}}
}

// add takes what nodes answered, of which a bundle has more than was asked for.
func (t *timeline) add(all []answered[api.History], q api.HistoryQuery) {
	for _, x := range all {
		if x.answer != nil {
			t.Histories = append(t.Histories, x.answer.Keep(q))
		}
	}
	t.Missing = missing(all)
}

// group makes events of the histories.
func (t *timeline) group() {
	var items []api.NodeItem
	for _, h := range t.Histories {
		for _, i := range h.Items {
			items = append(items, api.NodeItem{Node: h.SeenFrom.Cluster + "/" + h.SeenFrom.Node, HistoryItem: i})
		}
	}
	t.Events = api.Timeline(items)
}

// bounds describes what the histories do not have of what was asked for.
func (t *timeline) bounds(q api.HistoryQuery, zone *time.Location) (lines []string) {
	for _, h := range t.Histories {
		if q.Since.Before(h.Begins) && !h.Begins.IsZero() {
			lines = append(lines, fmt.Sprintf("%s %s/%s has noted what happened since %s", api.Warn, h.SeenFrom.Cluster, h.SeenFrom.Node, h.Begins.In(zone).Format(time.DateTime)))
		}
		if h.LeftOut > 0 {
			lines = append(lines, fmt.Sprintf("%s %s/%s noted %d more before these; ask for less at once: --since, --until or a NAME", api.Warn, h.SeenFrom.Cluster, h.SeenFrom.Node, h.LeftOut))
		}
	}
	return lines
}

func (t *timeline) print(a *cli.App, q api.HistoryQuery) {
	p, now := a.Printer(), a.Now()
	for _, line := range t.bounds(q, now.Location()) {
		p.Line("%s", line)
	}
	if len(t.Events) == 0 && len(t.Histories) > 0 {
		a.Hint("nothing changed since %s; ask for more with --since", q.Since.In(now.Location()).Format(time.DateTime))
	} else if len(t.Events) > 0 {
		cli.Show(a, p, table.Timeline, t.Events)
	}
	for _, m := range t.Missing {
		p.Line("%s %s", api.Bad, m)
	}
}
