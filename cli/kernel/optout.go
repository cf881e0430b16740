package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/table"
	"strait.io/strait/datapath/socklb/inspect"
)

const optOutLong = `List or change the cgroups that strait leaves alone. From their next connection on, the processes of
such a cgroup, and of all cgroups below it, dial addresses as they are: frontends are not translated
for them.

Opt-outs are pinned beside the maps and need no daemon. On Kubernetes, annotate the pod instead.
CGROUP is the path of a cgroup v2 directory.`

const optOutExample = `  strait opt-out list
  strait opt-out add /sys/fs/cgroup/system.slice/proxy.service`

// optOut is a cgroup that is left alone.
type optOut struct {
	Cgroup string `json:"cgroup"`
	// Processes is how many are in it and below it now.
	Processes int `json:"processes"`
}

// TableHeader names the columns.
func (optOut) TableHeader() []string { return []string{"CGROUP", "PROCESSES"} }

// TableRow has one cell per column.
func (o optOut) TableRow(time.Time) []string {
	return []string{o.Cgroup, fmt.Sprint(o.Processes)}
}

// optOutList is the data of opt-out list.
type optOutList struct {
	api.Meta
	Pins  string   `json:"pins"`
	Items []optOut `json:"items"`
}

// OptOutChange is the data of opt-out add and remove.
type OptOutChange struct {
	api.Meta
	Pins string `json:"pins"`
	optOut
	// Action is "add" or "remove".
	Action string `json:"action"`
	DryRun bool   `json:"dryRun,omitempty"`
	// Already is true if the cgroup was already left alone before add.
	Already bool `json:"already,omitempty"`
	// Undo is the command that reverts the change; empty if there is nothing to revert.
	Undo string `json:"undo,omitempty"`
}

// OptOutCommand lists or changes opt-outs.
func OptOutCommand(in *cli.App, k Kernel) *cobra.Command {
	a := &maps{in, k}
	var pins string
	cmd := &cobra.Command{
		Use:     "opt-out",
		Short:   "List or change the cgroups that strait leaves alone",
		Long:    optOutLong,
		Example: optOutExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addPinsFlag(cmd, &pins)
	cmd.AddCommand(a.optOutListCommand(&pins),
		a.optOutChangeCommand(&pins, "add", "Leave the processes of a cgroup alone, from their next connection on"),
		a.optOutChangeCommand(&pins, "remove", "Translate frontends for the processes of a cgroup again"))
	return cmd
}

func (a *maps) optOutListCommand(pins *string) *cobra.Command {
	return cli.Listing(&cobra.Command{
		Use:               "list",
		Short:             "List the cgroups that are left alone, and how many processes each has",
		Example:           "  strait opt-out list\n  strait opt-out list -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir := a.findPins(cmd.Context(), *pins).dir
			cgroups, err := a.kernel.OptOuts(dir)
			if err != nil {
				return pinsError(dir, err)
			}
			list := optOutList{api.Meta{APIVersion: api.APIVersion, Kind: "OptOutList"}, dir, []optOut{}}
			for _, c := range cgroups {
				n, err := processes(c)
				if errors.Is(err, fs.ErrNotExist) {
					continue // just removed, and its opt-out with it
				}
				if err != nil {
					return cli.Exit(cli.ExitUnknown, fmt.Errorf("count the processes of cgroup %s: %w", c, err))
				}
				list.Items = append(list.Items, optOut{c, n})
			}
			var names []string
			for _, o := range list.Items {
				names = append(names, o.Cgroup)
			}
			if done, err := a.Names(names); done {
				return err
			}
			if done, err := a.Data(list); done {
				return err
			}
			p := a.Printer()
			p.Line("opt-outs pinned at %s, read just now · %s", dir, api.Count(len(list.Items), "cgroup"))
			p.Table(table.Of(list.Items, a.Now()))
			return nil
		},
	})
}

func (a *maps) optOutChangeCommand(pins *string, action, short string) *cobra.Command {
	var dryRun bool
	example := "  strait opt-out " + action + " /sys/fs/cgroup/system.slice/proxy.service"
	cmd := &cobra.Command{
		Use:     action + " CGROUP",
		Short:   short,
		Example: example + " --dry-run\n" + example,
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !filepath.IsAbs(args[0]) {
				return cli.UsageError("cgroup %q is not an absolute path: write one such as /sys/fs/cgroup/system.slice/proxy.service", args[0])
			}
			change := OptOutChange{Meta: api.Meta{APIVersion: api.APIVersion, Kind: "OptOut"}, Action: action, DryRun: dryRun,
				Pins: a.findPins(cmd.Context(), *pins).dir, optOut: optOut{Cgroup: filepath.Clean(args[0])}}
			if err := a.changeOptOut(&change); err != nil {
				return err
			}
			if done, err := a.Data(change); done {
				return err
			}
			a.printOptOut(change)
			return nil
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would change, and change nothing")
	return cmd
}

// changeOptOut makes the change, unless it is a dry run, and fills in the rest of c.
func (a *maps) changeOptOut(c *OptOutChange) error {
	before, err := a.kernel.OptOuts(c.Pins)
	if err != nil {
		return pinsError(c.Pins, err)
	}
	path, listed := findCgroup(before, c.Cgroup)
	apply, opposite := a.kernel.AddOptOut, "remove"
	switch {
	case c.Action == "add":
		// It is added even if listed: it can be listed for another reason, such as a pod's
		// annotation.
		c.Already = listed
	case !listed:
		return notOptedOut(c.Cgroup)
	default:
		apply, opposite, c.Cgroup = a.kernel.RemoveOptOut, "add", path
	}
	if c.Processes, err = processes(c.Cgroup); err != nil {
		return cgroupError(c.Cgroup, err)
	}
	if c.Action == "add" { // a dry run refuses what the change would refuse
		if err := a.kernel.CheckOptOut(c.Cgroup); err != nil {
			return err
		}
	}
	if !c.Already {
		c.Undo = undoOptOut(opposite, c.Cgroup, c.Pins)
	}
	if c.DryRun {
		return nil
	}
	if err := apply(c.Pins, c.Cgroup); errors.Is(err, fs.ErrPermission) {
		return pinsError(c.Pins, err)
	} else if err != nil {
		return err
	}
	return a.checkOptOut(*c)
}

// checkOptOut reads back the result of the change: opt-outs that straitd itself made stay.
func (a *maps) checkOptOut(c OptOutChange) error {
	after, err := a.kernel.OptOuts(c.Pins)
	if err != nil {
		return pinsError(c.Pins, err)
	}
	_, listed := findCgroup(after, c.Cgroup)
	switch {
	case c.Action == "remove" && listed:
		return cli.Exit(cli.ExitProblem, &api.Failure{
			Message: "cgroup " + c.Cgroup + " is no longer opted out by hand, but straitd still leaves it alone for reasons of its own",
			Try:     "remove the annotation of the pod that runs in it"})
	case c.Action == "add" && !listed:
		return cli.Exit(cli.ExitProblem, &api.Failure{
			Message: "the opt-out of cgroup " + c.Cgroup + " did not stay: another process removed it at the same time",
			Try:     "run the same command again"})
	}
	return nil
}

// findCgroup returns the path under which a cgroup is listed.
func findCgroup(list []string, cgroup string) (path string, found bool) {
	i := slices.IndexFunc(list, func(path string) bool { return sameDir(path, cgroup) })
	if i < 0 {
		return "", false
	}
	return list[i], true
}

func notOptedOut(cgroup string) error {
	return cli.Exit(cli.ExitProblem, &api.Failure{Reason: api.NotFound, Message: "cgroup " + cgroup + " is not opted out",
		Try: "list the cgroups that are with strait opt-out list; a cgroup is also left alone if one above it is"})
}

func cgroupError(cgroup string, err error) error {
	f := &api.Failure{Reason: api.NotFound, Cause: err, Message: fmt.Sprintf("read cgroup %s: %v", cgroup, err)}
	if errors.Is(err, fs.ErrNotExist) {
		f.Message = cgroup + " is not a cgroup v2 directory"
		f.Try = "name one below the cgroup2 mount; /proc/PID/cgroup has that of a process"
	}
	return cli.Exit(cli.ExitProblem, f)
}

// undoOptOut returns the command line that reverts a change, with --pins unless they are the
// default.
func undoOptOut(action, cgroup, pins string) string {
	words := []string{"strait", "opt-out", action, shellWord(cgroup)}
	if pins != inspect.DefaultPins {
		words = append(words, "--pins", shellWord(pins))
	}
	return strings.Join(words, " ")
}

// shellWord quotes s if a shell would interpret it: the names of systemd units have backslashes.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-@:", r)
	}
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func (a *maps) printOptOut(c OptOutChange) {
	p := a.Printer()
	who := fmt.Sprintf("%d processes now", c.Processes)
	if c.Processes == 1 {
		who = "1 process now"
	}
	state, effect := "left alone", "dials addresses as they are"
	if c.Action == "remove" {
		state, effect = "served again", "is balanced"
	}
	switch {
	case c.Already:
		p.Line("%s cgroup %s is already %s (%s)", api.OK, c.Cgroup, state, who)
	case c.DryRun:
		p.Line("dry run: cgroup %s would be %s: what runs in it and below (%s) %s from its next connection on",
			c.Cgroup, state, who, effect)
	default:
		p.Line("%s cgroup %s is %s: what runs in it and below (%s) %s from its next connection on", api.OK, c.Cgroup,
			state, who, effect)
	}
	if c.Undo != "" {
		p.Line("  undo  %s", c.Undo)
	}
}

// sameDir reports whether two paths name one directory, perhaps on different mounts of one tree.
func sameDir(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// processes counts the processes in a cgroup and below it.
func processes(cgroup string) (n int, err error) {
	if _, err := os.Stat(filepath.Join(cgroup, "cgroup.controllers")); err != nil {
		return 0, err // not a cgroup, or not cgroup v2
	}
	err = filepath.WalkDir(cgroup, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cgroup.procs" {
			if path != cgroup && errors.Is(err, fs.ErrNotExist) {
				return nil // a cgroup that was removed meanwhile
			}
			return err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENODEV) || errors.Is(err, fs.ErrNotExist) {
			return nil // threaded (its processes are counted above it), or gone
		}
		n += strings.Count(string(text), "\n")
		return err
	})
	return n, err
}
