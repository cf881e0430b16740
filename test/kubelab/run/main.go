// Command run controls the Kubernetes lab: make kube-lab, kube-lab-import and kube-lab-down call
// it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/kubelab/programs"
)

const usage = `usage: run [-dir .lab] up [-clusters 2] [-nodes 2] [-without-pod-cidrs c2] [-cni c1=NAME,c2=NAME] [-strait CLI -image FILE -name REFERENCE]
       run [-dir .lab] import FILE.tar
       run [-dir .lab] node-down NODE | node-up NODE
       run [-dir .lab] down
       run build`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "kube-lab: %v\n", err)
		stop()
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	flags.Usage = func() { fmt.Fprintln(os.Stderr, usage) }
	dir := flags.String("dir", ".lab", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	switch what := flags.Arg(0); what {
	case "build":
		if err := kubelab.Fit(2, 2); err != nil {
			return skip(ctx, err)
		}
		_, err := build(ctx)
		return err
	case "up":
		return up(ctx, *dir, log, flags.Args()[1:])
	case "down":
		l, err := kubelab.Open(*dir, log)
		if errors.Is(err, os.ErrNotExist) {
			return os.RemoveAll(*dir) // at most the logs of a lab that did not come up
		}
		if err != nil {
			return err
		}
		return l.Down(ctx)
	case "import", "node-down", "node-up":
		if flags.NArg() != 2 {
			return fmt.Errorf("%s: want one file or node\n%s", what, usage)
		}
		l, err := kubelab.Open(*dir, log)
		if err != nil {
			return fmt.Errorf("%w; run `make kube-lab` first", err)
		}
		return map[string]func(context.Context, string) error{
			"import": l.Import, "node-down": l.NodeDown, "node-up": l.NodeUp,
		}[what](ctx, flags.Arg(1))
	default:
		return errors.New(usage)
	}
}

// skip records why the programs are not built, and fails in CI.
func skip(ctx context.Context, why error) error {
	source, err := programs.Source(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(source, "test/setup/skip.sh"), "kube-programs", why.Error())
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

func build(ctx context.Context) (string, error) {
	source, err := programs.Source(ctx)
	if err != nil {
		return "", err
	}
	return programs.Kubernetes.Build(ctx, source, os.Stderr)
}

func up(ctx context.Context, dir string, log *slog.Logger, args []string) error {
	flags := flag.NewFlagSet("up", flag.ExitOnError)
	o := kubelab.Options{Dir: dir, Log: log}
	flags.IntVar(&o.Clusters, "clusters", 2, "")
	flags.IntVar(&o.Nodes, "nodes", 2, "nodes per cluster; 0 for API servers only")
	var s kubelab.Strait
	flags.StringVar(&s.CLI, "strait", "", "strait's CLI, to install strait with; if empty, strait is not installed")
	flags.StringVar(&s.ImageFile, "image", "", "file of strait's image")
	flags.StringVar(&s.Image, "name", "", "reference of strait's image")
	without := flags.String("without-pod-cidrs", "", "comma-separated clusters whose nodes have no podCIDRs")
	cnis := flags.String("cni", "", "comma-separated clusters with another pod network, such as c1=flannel-vxlan")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *without != "" {
		o.WithoutPodCIDRs = strings.Split(*without, ",")
	}
	if _, err := kubelab.Open(dir, log); err == nil {
		return fmt.Errorf("%s already holds a lab: run `make kube-lab-down` first", dir)
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := kubelab.Fit(o.Clusters, o.Nodes); err != nil {
		return err // now, and not after building for a quarter of an hour
	}
	var err error
	if o.Source, err = programs.Source(ctx); err != nil {
		return err
	}
	if o.Programs, err = build(ctx); err != nil {
		return err
	}
	if o.CNIs, err = buildCNIs(ctx, *cnis, o.Source); err != nil {
		return err
	}
	start := time.Now()
	l, err := kubelab.Up(ctx, o)
	if err != nil {
		return err
	}
	if s.CLI != "" {
		if err := l.InstallStrait(ctx, s); err != nil {
			return fmt.Errorf("install strait in the clusters, which are up: %w", err)
		}
	}
	path := filepath.Join(l.Dir, "bin")
	if s.CLI != "" {
		path += ":" + filepath.Dir(s.CLI)
	}
	fmt.Printf("%d clusters are up after %.1f s. To use them in this shell:\n\n  export KUBECONFIG=%s PATH=%s:$PATH\n  kubectl --context c1 get nodes\n",
		len(l.Topology.Clusters), time.Since(start).Seconds(), l.Kubeconfig(), path)
	return nil
}

// buildCNIs reads the value of the flag -cni and builds what it names.
func buildCNIs(ctx context.Context, value, source string) (map[string]kubelab.CNI, error) {
	out := map[string]kubelab.CNI{}
	if value == "" {
		return out, nil
	}
	names, err := kubelab.ParseCNIs(value)
	if err != nil {
		return nil, fmt.Errorf("-cni: %w", err)
	}
	for cluster, name := range names {
		if out[cluster], err = kubelab.BuildCNI(ctx, name, source, os.Stderr); err != nil {
			return nil, fmt.Errorf("-cni: %w", err)
		}
	}
	return out, nil
}
