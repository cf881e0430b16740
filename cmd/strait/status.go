package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// pollInterval is how often --wait asks again.
const pollInterval = 250 * time.Millisecond

const statusLong = `Show on one screen whether all is well on this node: the clusters it hears, what the kernel holds,
and every problem, with what to do about it.

All is well if straitd is ready, its hooks are attached and no problem is an error. Warnings are
allowed. Scripts can use the exit code: strait --help lists them.`

const statusExample = `  strait status
  strait status --wait=5m -o json    # for scripts: wait until all is well, then print JSON`

func (a *app) statusCommand() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:               "status",
		Short:             "Show whether all is well on this node, and what to do if not",
		Long:              statusLong,
		Example:           statusExample,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if _, err := time.ParseDuration(args[0]); err == nil && wait > 0 {
				return usageError("status takes no argument %q: write --wait=%s", args[0], args[0])
			}
			return usageError("status takes no argument, got %q", args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait < 0 {
				return usageError("--wait=%s: want a duration above 0", wait)
			}
			if wait > 0 {
				return a.waitStatus(cmd.Context(), wait)
			}
			status, err := ask(cmd.Context(), a, (*client.Client).Status)
			if err != nil {
				return err
			}
			return a.showStatus(status)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait until all is well, for at most `duration`")
	cmd.Flags().Lookup("wait").NoOptDefVal = "60s"
	return cmd
}

// showStatus prints a status. If something is wrong, its error has the exit code and no text.
func (a *app) showStatus(s *api.Status) error {
	if done, err := a.data(api.NewStatusAnswer(*s)); err != nil {
		return err
	} else if !done {
		a.printStatus(*s)
	}
	if len(obstacles(*s)) > 0 {
		return &exitError{exitProblem, nil}
	}
	return nil
}

// obstacles lists what is wrong: the daemon is not ready, the hooks are not attached, or there are
// problems other than warnings. It is empty if all is well.
func obstacles(s api.Status) (out []string) {
	if !s.Ready {
		out = append(out, "not ready, waiting for "+waitingFor(s))
	} else if !s.Datapath.Attached {
		out = append(out, "the socket hooks are not attached: connections bypass strait")
	}
	for _, p := range s.Problems {
		if !p.Warning {
			out = append(out, p.String())
		}
	}
	return out
}

func waitingFor(s api.Status) string {
	if len(s.Waiting) == 0 {
		return "the first plan to be applied"
	}
	return strings.Join(s.Waiting, ", ")
}

// waitStatus polls until all is well and prints the last status. On stderr it prints what it is
// waiting for, whenever that changes. A failure that waiting cannot fix ends it at once.
func (a *app) waitStatus(ctx context.Context, limit time.Duration) error {
	started := a.now()
	timeUp := time.NewTimer(limit)
	defer timeUp.Stop()
	shown := ""
	for {
		status, err := ask(ctx, a, (*client.Client).Status)
		waiting := ""
		var failure *api.Failure
		switch {
		case err == nil:
			waiting = strings.Join(obstacles(*status), "; ")
		case !errors.As(err, &failure) || failure.Reason == api.Denied || failure.Reason == api.NotStrait:
			return err
		default:
			waiting = failure.Message
		}
		if waiting == "" {
			return a.showStatus(status)
		}
		if waiting != shown {
			a.hint("waiting (%s): %s", api.Age(a.now().Sub(started)), clean(waiting))
			shown = waiting
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for straitd: %w", ctx.Err())
		case <-timeUp.C:
			return a.waitOver(limit, status, err)
		case <-time.After(min(pollInterval, limit)):
		}
	}
}

// waitOver ends a wait that ran out: it prints the last status, if there is one, and returns
// exitWaitOver in place of the status's exit code.
func (a *app) waitOver(limit time.Duration, status *api.Status, err error) error {
	if err != nil {
		return &exitError{exitWaitOver, err}
	}
	var exit *exitError
	if err := a.showStatus(status); !errors.As(err, &exit) {
		return err
	}
	a.hint("--wait=%s ran out", limit)
	return &exitError{exitWaitOver, nil}
}

func (a *app) printStatus(s api.Status) {
	p := a.printer()
	note := ""
	if s.Leader {
		note = " (leader)"
	}
	a.header(p, s.Viewpoint(), note)
	p.table(api.Table(s.Clusters, a.now()))
	for _, c := range s.Clusters {
		if (c.State == api.Held || c.State == api.Quiet) && !slices.ContainsFunc(s.Problems, func(o problem.Problem) bool {
			return o.Ref == problem.Cluster(c.Name)
		}) {
			p.line("%s %s", api.Warn, unheardLine(c, a.now()))
		}
	}
	p.line("data path  %s", datapathLine(s.Datapath))
	if len(s.Datapath.Maps) > 0 {
		p.line("maps       %s", mapsLine(s.Datapath.Maps))
	}
	p.line("applied    %s · straitd %s", appliedText(s, a.now()), s.Version)
	if s.Authority == api.AuthorityOff {
		p.line("authority  off: every holder of the gossip key is trusted")
	}
	if s.Writing != nil {
		p.line("writing    %s", writingLine(*s.Writing, s.Time))
	}
	if len(s.Waiting) > 0 || !s.Ready {
		glyph := api.Warn
		if !s.Ready {
			glyph = api.Bad + " not ready,"
		}
		p.line("%s waiting for %s", glyph, waitingFor(s))
	}
	if s.Ready && !s.Datapath.Attached {
		p.line("%s the socket hooks are not attached: connections bypass strait", api.Bad)
	}
	p.foreign(s.Datapath.Foreign)
	p.features(s.Datapath.Features)
	p.problems(s.Problems)
}

// unheardLine describes a cluster none of whose daemons is heard: since when, and that what it last
// published is kept.
func unheardLine(c api.Cluster, now time.Time) string {
	heard := "not been heard since this straitd started"
	if !c.Heard.IsZero() {
		heard = "not been heard for " + api.Age(now.Sub(c.Heard))
	}
	if c.State == api.Quiet {
		heard += ", but at least one of its machines answers"
	}
	return fmt.Sprintf("cluster %s has %s: its %s and %s are kept as last known", c.Name, heard,
		api.Count(c.Exports, "export"), api.Count(c.Endpoints, "endpoint"))
}

func datapathLine(d api.Datapath) string {
	attached := "not attached"
	if d.Attached {
		attached = "attached to " + d.Cgroup
	}
	return fmt.Sprintf("%s · %s · %s · mesh %s · pins %s", attached, api.Count(d.Frontends, "frontend"),
		api.Count(d.Backends, "backend"), d.Mesh, d.Pins)
}

// mapsLine describes how full the maps are.
func mapsLine(all []datapath.MapUsage) string {
	parts := make([]string, len(all))
	for i, m := range all {
		parts[i] = m.Map + " " + api.Percent(m.Share())
	}
	return strings.Join(parts, " · ")
}

// foreign prints other programs on the hooks, except those that a Problem names because they run
// first. strait cannot know what they do.
func (p printer) foreign(all []datapath.ForeignProgram) {
	rest := slices.DeleteFunc(slices.Clone(all), datapath.ForeignProgram.Decides)
	if len(rest) == 0 {
		return
	}
	where := make([]string, len(rest))
	for i, f := range rest {
		where[i] = fmt.Sprintf("%s on %s", cmp.Or(f.Name, "one without a name"), f.Hook)
	}
	chooses := "strait chooses before them"
	if i := slices.IndexFunc(rest, func(f datapath.ForeignProgram) bool { return f.Order == datapath.Top }); i >= 0 {
		chooses += ", except for processes in no cgroup below " + rest[i].Path
	}
	if len(datapath.Ahead(all)) > 0 {
		chooses = "they do not choose before strait"
	}
	p.line("%s of other software on the socket hooks: %s (%s)", api.Count(len(rest), "program"), chooses, strings.Join(where, ", "))
}

func appliedText(s api.Status, now time.Time) string {
	if s.Applied.IsZero() {
		return "never"
	}
	return api.Age(now.Sub(s.Applied)) + " ago"
}

// writingLine describes how far the leader is with writing the objects of its cluster.
func writingLine(w api.Writing, now time.Time) string {
	line := fmt.Sprintf("%d of %s to the API server", w.Done, api.Count(w.Total, "import"))
	if left := w.Left(now); left > 0 {
		line += ", about " + api.Age(left) + " left"
	}
	return line
}

// features prints each feature that the kernel lacks, and what strait does without it.
func (p printer) features(all []datapath.Feature) {
	missing := 0
	for _, f := range all {
		if f.OK {
			continue
		}
		missing++
		since := ""
		if f.Since != "" {
			since = " (in Linux " + f.Since + ")"
		}
		if f.Without == "" {
			p.line("%s kernel has no %s%s: strait cannot run without it", api.Bad, f.Name, since)
			continue
		}
		p.line("%s kernel has no %s%s: %s", api.Warn, f.Name, since, f.Without)
	}
	if missing == 0 && len(all) > 0 {
		p.line("kernel     has every feature that strait can use (%d probed)", len(all))
	}
}

// problems prints each problem with its object and what to try, errors first, and then the totals.
func (p printer) problems(all []problem.Problem) {
	errorCount := 0
	for _, warnings := range []bool{false, true} {
		for _, o := range all {
			if o.Warning != warnings {
				continue
			}
			if !o.Warning {
				errorCount++
			}
			p.line("%s %s", api.Glyph(o), strings.TrimSpace(string(o.Code)+" "+o.Finding()))
			if o.Try != "" {
				p.line("  try  %s", o.Try)
			}
		}
	}
	if len(all) == 0 {
		p.line("%s no problems", api.OK)
		return
	}
	p.line("%s, %s; strait help CODE explains one", api.Count(errorCount, "error"), api.Count(len(all)-errorCount, "warning"))
}
