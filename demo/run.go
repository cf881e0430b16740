package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"strait.io/strait/demo/lab"
)

// run is `strait demo`: it builds the lab, plays the scenario, reports, and tears everything down.
func run(cmd *cobra.Command, o options, play func(*scenario, context.Context) error) (err error) {
	if err := o.size.Check(); err != nil {
		return err
	}
	b, err := findBinaries()
	if err != nil {
		return err
	}
	if o.json != "" { // fail now and not after two minutes
		if err := os.WriteFile(o.json, nil, 0o644); err != nil {
			return fmt.Errorf("--json: %w", err)
		}
	}
	// Closing the terminal, or the reader of a pipe, ends the demo like Ctrl-C.
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	out := newPrinter(cmd)
	var drawing sync.WaitGroup
	drawCtx, stopDrawing := context.WithCancel(context.WithoutCancel(ctx))
	if out.live {
		drawing.Go(func() { out.run(drawCtx) })
	}
	defer drawing.Wait()
	defer stopDrawing()
	defer out.quiet()

	res := &Result{Kernel: kernelRelease(), Clusters: o.size.Clusters, Nodes: o.size.Nodes, Steps: []*Step{}}
	begun := time.Now()
	err = playInLab(ctx, o, b, out, res, func(ctx context.Context, s *scenario) error { return play(s, ctx) })
	res.Seconds = seconds(time.Since(begun))
	res.total()
	res.OK = res.OK && err == nil
	if o.json != "" {
		err = errors.Join(err, writeJSON(o.json, res))
	}
	out.quiet()
	if len(res.Steps) > 0 {
		out.total(res)
	}
	out.print(res.try...)
	if err != nil {
		return err
	}
	if !res.OK {
		met, all := res.expectations()
		return fmt.Errorf("%d of %d expectations did not hold; see the daemons' logs in %s (remove them with `strait demo down`)",
			all-met, all, o.dir)
	}
	return nil
}

// playInLab builds the lab, plays in it, and tears it down unless --keep is set.
func playInLab(ctx context.Context, o options, b binaries, out *printer, res *Result, play func(context.Context, *scenario) error) (err error) {
	out.progress(fmt.Sprintf("creating %d clusters of %d nodes in %s", o.size.Clusters, o.size.Nodes, o.dir))
	l, err := lab.Build(ctx, lab.Options{Size: o.size, Dir: o.dir, Enter: []string{b.strait, "demo", "enter"}})
	if err != nil {
		return err
	}
	cs := newClusterset(l, b)
	defer func() {
		if o.keep && ctx.Err() == nil && len(res.Steps) > 0 {
			cs.close()
			err = errors.Join(err, l.Keep())
			res.try = tryThese(l, o.dir, b.strait, res)
			return
		}
		out.progress("removing everything")
		down := l.TearDown
		if !allMet(res) || err != nil {
			down = l.TearDownKeepLogs
		}
		if ctx.Err() != nil {
			down = l.TearDown
		}
		err = errors.Join(err, down(context.WithoutCancel(ctx)))
		cs.close()
	}()
	if err := writeInput(l); err != nil {
		return err
	}
	out.progress(fmt.Sprintf("starting the pods and %d straitd", len(l.Nodes())))
	if err := cs.start(ctx); err != nil {
		return err
	}
	return play(ctx, newScenario(cs, out, res))
}

func allMet(res *Result) bool {
	met, all := res.expectations()
	return met == all
}

func newPrinter(cmd *cobra.Command) *printer {
	p := &printer{w: cmd.OutOrStdout()}
	set := func(name string) bool {
		f := cmd.Flag(name) // finds the root command's flags too
		return f != nil && f.Value.String() == "true"
	}
	f, isFile := p.w.(*os.File)
	dumb := os.Getenv("TERM") == "dumb"
	p.live = isFile && term.IsTerminal(int(f.Fd())) && !dumb
	if p.live {
		p.width, _, _ = term.GetSize(int(f.Fd())) // 0 if unknown
	}
	p.color = p.live && os.Getenv("NO_COLOR") == "" && !set("no-color")
	p.ascii = set("ascii")
	return p
}

func kernelRelease() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

func writeJSON(path string, res *Result) error {
	b, err := json.MarshalIndent(res, "", "  ")
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// tryThese returns commands to try on a demo that is left up.
func tryThese(l *lab.Lab, dir, strait string, res *Result) []string {
	first := l.Clusters[0].Nodes[0].Name
	cwd, err := os.Getwd()
	relative := func(path string) string {
		if r, e := filepath.Rel(cwd, path); err == nil && e == nil && !strings.HasPrefix(r, "..") {
			return r
		}
		return path
	}
	me, socket := relative(strait), relative(socketFile(l, first))
	if !strings.Contains(me, "/") {
		me = "./" + me
	}
	at := ""
	if dir != "./.demo" {
		at = " --dir " + dir
	}
	pins := relative(l.Pins(first))
	manifest := relative(filepath.Join(manifestDir(l, l.Clusters[0].Name), "serve.yaml"))
	lines := []string{
		"", "The demo is still up. Try, as root:", "",
		"  # call serve from a pod by name, and from a node by address",
		fmt.Sprintf("  %s demo exec%s %s/client -- curl -s http://%s", me, at, first, serveName),
	}
	if res.ClusterSetIP.IsValid() {
		lines = append(lines, fmt.Sprintf("  %s demo exec%s %s -- curl -s http://%s", me, at, first, res.ClusterSetIP))
	}
	return append(lines,
		"",
		fmt.Sprintf("  # take the pods of %s away and call again: another cluster answers; then bring them back", l.Clusters[0].Name),
		fmt.Sprintf("  sed -i 's/ready: true/ready: false/' %s", manifest),
		fmt.Sprintf("  sed -i 's/ready: false/ready: true/' %s", manifest),
		"",
		fmt.Sprintf("  # ask the daemon on %s what it hears, and why connections go where they go", first),
		fmt.Sprintf("  %s status --socket %s", me, socket),
		fmt.Sprintf("  %s nodes --socket %s", me, socket),
		fmt.Sprintf("  %s explain default/serve --socket %s", me, socket),
		"",
		"  # look at it in a browser: open the address that this prints",
		fmt.Sprintf("  %s ui --socket %s", me, socket),
		"",
		"  # read the kernel's maps, without the daemon",
		fmt.Sprintf("  %s bpf backends --pins %s", me, pins),
		fmt.Sprintf("  bpftool map dump pinned %s/services", pins),
		"",
		"Remove it with:",
		fmt.Sprintf("  %s demo down%s", me, at),
	)
}
