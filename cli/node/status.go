// Package node has the commands that ask the daemon on this node: status, services, exports,
// explain, backends, flows, top, nodes, members, trace, policy, graph, peer and version.
//
// Inputs are flags and the daemon's answers (package daemon/api); outputs are text and an exit code.
// peer add and peer remove also change the file of pinned machines. It must not know how answers are
// computed, the kernel, or Kubernetes.
package node

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

const statusLong = `Show on one screen whether all is well on this node: the clusters it hears, what the kernel holds,
and every problem, with what to do about it.

With --context, which can be repeated, it shows all nodes of those clusters as one. What they see
in the same way is one row; where they differ, each row names its nodes. With --node '*', it does
so for this node's cluster, and with another --node it shows that node alone.

All is well if straitd is ready, its hooks are attached and no problem is an error. Warnings are
allowed. Scripts can use the exit code: strait --help lists them.`

const statusExample = `  strait status
  strait status --context c1 --context c2    # all nodes of two clusters, from anywhere
  strait status --wait=5m -o json    # for scripts: wait until all is well, then print JSON`

func StatusCommand(a *cli.App) *cobra.Command {
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
				return cli.UsageError("status takes no argument %q: write --wait=%s", args[0], args[0])
			}
			return cli.UsageError("status takes no argument, got %q", args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait < 0 {
				return cli.UsageError("--wait=%s: want a duration above 0", wait)
			}
			every, err := a.AsksCluster(cmd.Context())
			switch {
			case err != nil:
				return err
			case every && wait > 0:
				return waitUntilWell(cmd.Context(), a, wait, everyLook)
			case every:
				return showEvery(a, askEvery(cmd.Context(), a))
			case wait > 0:
				return waitUntilWell(cmd.Context(), a, wait, oneLook)
			}
			status, err := cli.Ask(cmd.Context(), a, (*client.Client).Status)
			if err != nil {
				return err
			}
			return showStatus(a, status)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait until all is well, for at most `duration`")
	cmd.Flags().Lookup("wait").NoOptDefVal = "60s"
	return cli.Wide(cmd)
}

// showStatus prints a status. If something is wrong, its error has the exit code and no text.
func showStatus(a *cli.App, s *api.Status) error {
	if done, err := a.Data(api.NewStatusAnswer(*s)); err != nil {
		return err
	} else if !done {
		printStatus(a, *s)
	}
	if len(obstacles(*s)) > 0 {
		return cli.Exit(cli.ExitProblem, nil)
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

func printStatus(a *cli.App, s api.Status) {
	p := a.Printer()
	note := ""
	if s.Leader {
		note = " (leader)"
	}
	a.Header(p, s.Viewpoint(), note)
	cli.Show(a, p, table.Clusters, s.Clusters)
	for _, c := range s.Clusters {
		if (c.State == api.Held || c.State == api.Quiet) && !slices.ContainsFunc(s.Problems, func(o problem.Problem) bool {
			return o.Ref == problem.Cluster(c.Name)
		}) {
			p.Line("%s %s", api.Warn, unheardLine(c, a.Now()))
		}
	}
	p.Line("data path  %s", datapathLine(s.Datapath))
	if len(s.Datapath.Maps) > 0 {
		p.Line("maps       %s", mapsLine(s.Datapath.Maps))
	}
	p.Line("applied    %s · straitd %s", appliedText(s, a.Now()), s.Version)
	if s.Authority == api.AuthorityOff {
		p.Line("authority  off: every holder of the gossip key is trusted")
	}
	if s.Writing != nil {
		p.Line("writing    %s", writingLine(*s.Writing, s.Time))
	}
	if len(s.Waiting) > 0 || !s.Ready {
		glyph := api.Warn
		if !s.Ready {
			glyph = api.Bad + " not ready,"
		}
		p.Line("%s waiting for %s", glyph, waitingFor(s))
	}
	if s.Ready && !s.Datapath.Attached {
		p.Line("%s the socket hooks are not attached: connections bypass strait", api.Bad)
	}
	foreign(p, s.Datapath.Foreign)
	features(p, s.Datapath.Features)
	problems(p, s.Problems)
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
func foreign(p cli.Printer, all []datapath.ForeignProgram) {
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
	p.Line("%s of other software on the socket hooks: %s (%s)", api.Count(len(rest), "program"), chooses, strings.Join(where, ", "))
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
func features(p cli.Printer, all []datapath.Feature) {
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
			p.Line("%s kernel has no %s%s: strait cannot run without it", api.Bad, f.Name, since)
			continue
		}
		p.Line("%s kernel has no %s%s: %s", api.Warn, f.Name, since, f.Without)
	}
	if missing == 0 && len(all) > 0 {
		p.Line("kernel     has every feature that strait can use (%d probed)", len(all))
	}
}

// problems prints each problem with its object and what to try, errors first, and then the totals.
func problems(p cli.Printer, all []problem.Problem) {
	errorCount := 0
	for _, warnings := range []bool{false, true} {
		for _, o := range all {
			if o.Warning != warnings {
				continue
			}
			if !o.Warning {
				errorCount++
			}
			p.Line("%s %s", api.Glyph(o), strings.TrimSpace(string(o.Code)+" "+o.Finding()))
			if o.Try != "" {
				p.Line("  try  %s", o.Try)
			}
		}
	}
	if len(all) == 0 {
		p.Line("%s no problems", api.OK)
		return
	}
	p.Line("%s, %s; strait help CODE explains one", api.Count(errorCount, "error"), api.Count(len(all)-errorCount, "warning"))
}
