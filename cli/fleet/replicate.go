package fleet

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/daemon/api"
	"strait.io/strait/replicate"
)

// replicateFlags are the flags of replicate.
type replicateFlags struct {
	file, policies, name      string
	once, watch, text, dryRun bool
	debug                     bool
}

func ReplicateCommand(a *cli.App) *cobra.Command {
	var f replicateFlags
	c := &cobra.Command{
		Use:   "replicate -f FILE",
		Short: "Mirror Services between clusters in which nothing of strait runs",
		Long: `Make the Services of some clusters exist in others, where pod networks reach each other: a Service
without selector and its EndpointSlices, of the same name, with the pods' own addresses. Nothing is
installed. A file lists the clusters, and which of its Services the others get:

  clusters:
  - name: onPremCluster1
    kubeconfig: /cfg/kubeconfig-onPremCluster1.yaml
    services:
    - namespace: stars
  - name: eksCluster1
    kubeconfig: /cfg/kubeconfig-eksCluster1.yaml
    services:
    - namespace: client
      nameMatches: ["web-.*"]     # optional: RE2, for the whole name

To choose by label, to give mirrors other names, or to lead to the ClusterIP instead of the pods,
write ServicePolicy documents with as: mirror, and give them with --policies. --print shows some.

Missing namespaces are created. A Service that exists and is no mirror is never touched. What the
file no longer selects is deleted; what came from a cluster that does not answer stays, and the
others are done. A second run changes nothing.`,
		Example: `  strait replicate -f multicluster_svcs.yaml --dry-run
  strait replicate -f multicluster_svcs.yaml --watch
  strait replicate -f clusters.yaml --policies reflect.yaml --watch
  strait replicate -f multicluster_svcs.yaml --print     # the same as ServicePolicy documents`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runReplicate(cmd.Context(), a, f) },
	}
	c.Flags().SortFlags = false
	c.Flags().StringVarP(&f.file, "file", "f", "", "`file` with the clusters and what they share; - is the standard input")
	c.Flags().StringVar(&f.policies, "policies", "", "`file` with ServicePolicy documents; they count besides the services of -f")
	c.Flags().BoolVar(&f.once, "once", false, "do one pass (the default)")
	c.Flags().BoolVar(&f.watch, "watch", false, "follow changes until interrupted")
	c.Flags().BoolVar(&f.text, "print", false, "print ServicePolicy documents that mean the same, and contact no cluster")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be written, and write nothing")
	c.Flags().BoolVar(&f.debug, "debug", false, "log each request and each decision to the standard error")
	c.Flags().StringVar(&f.name, "name", "default", "`name` of this set, if several replicate to a cluster")
	_ = c.MarkFlagRequired("file")
	c.MarkFlagsMutuallyExclusive("once", "watch", "print")
	c.MarkFlagsMutuallyExclusive("dry-run", "watch", "print")
	return c
}

func runReplicate(ctx context.Context, a *cli.App, f replicateFlags) error {
	if bad := validation.IsDNS1123Label(f.name); len(bad) > 0 {
		return cli.UsageError("--name %q: %s", f.name, bad[0])
	}
	text, err := readFile(a, f.file)
	if err != nil {
		return err
	}
	file, err := replicate.ParseFile(text, filepath.Dir(f.file))
	if err != nil {
		return cli.UsageError("%s: %w", f.file, err)
	}
	more, err := readPolicies(a, f, file)
	if err != nil {
		return err
	}
	if f.text {
		out, err := policy.Encode(append(file.Policies(), more...))
		if err == nil {
			_, err = a.Stdout.Write(out)
		}
		return err
	}
	p, done := a.Printer(), map[written.Verb]int{}
	would := ""
	if f.dryRun {
		would = "would "
	}
	r := replicate.New(replicate.Config{
		File: file, Policies: more, Set: f.name, DryRun: f.dryRun,
		Did: func(cluster string, o written.Op) {
			done[o.Verb]++
			p.Line("%s: %s%s", cluster, would, o)
		},
		Skipped: func(cluster string, s mirror.Skipped) {
			p.Line("%s %s: %s is left out: %s: %s", api.Warn, cluster, s.Source, s.Reason, s.Message)
		},
		Failed: func(err error) { p.Line("%s %v", api.Bad, err) },
		Log:    debugLog(a, f.debug),
	})
	if f.watch {
		return r.Watch(ctx)
	}
	if err := r.Once(ctx); err != nil {
		return err
	}
	if len(done) == 0 {
		p.Line("%d clusters: nothing to do", len(file.Clusters))
		return nil
	}
	format := "%d clusters: created %d, updated %d, deleted %d"
	if f.dryRun {
		format = "%d clusters: would create %d, update %d, delete %d"
	}
	p.Line(format, len(file.Clusters), done[written.Create], done[written.Update], done[written.Delete])
	return nil
}

// debugLog returns a logger to the standard error, or nil.
func debugLog(a *cli.App, on bool) *slog.Logger {
	if !on {
		return nil
	}
	return slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// readPolicies reads the file that --policies names, if any.
func readPolicies(a *cli.App, f replicateFlags, file replicate.File) ([]policy.Policy, error) {
	switch f.policies {
	case "":
		return nil, nil
	case f.file:
		return nil, cli.UsageError("--policies %s: is the file of -f too; write the clusters and the policies to two files", f.policies)
	}
	text, err := readFile(a, f.policies)
	if err != nil {
		return nil, err
	}
	out, err := file.ParsePolicies(text)
	if err != nil {
		return nil, cli.UsageError("%s: %w", f.policies, err)
	}
	return out, nil
}

// readFile reads a file, or the standard input for "-".
func readFile(a *cli.App, name string) ([]byte, error) {
	if name != "-" {
		return os.ReadFile(name)
	}
	text, err := io.ReadAll(a.Stdin)
	if err != nil {
		return nil, fmt.Errorf("read the standard input: %w", err)
	}
	return text, nil
}
