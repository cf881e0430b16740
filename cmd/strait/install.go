package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"strait.io/strait/install/bundle"
	"strait.io/strait/install/chart"
	"strait.io/strait/install/cluster"
)

// target are the flags that say which cluster, of all commands that go to an API server.
type target struct {
	kubeconfig, namespace string
	timeout               time.Duration
	dryRun                bool
}

func (t *target) flags(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&t.kubeconfig, "kubeconfig", "", "`file` with contexts (default: what kubectl takes)")
	f.StringVarP(&t.namespace, "namespace", "n", chart.Namespace, "strait's `namespace`")
	f.DurationVar(&t.timeout, "timeout", 5*time.Minute, "give up waiting after this `time`")
	c.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if o, err := cmd.Flags().GetString("output"); err != nil || o != "table" {
			return usageError("%s says what it does while it does it: there is no --output %s", cmd.CommandPath(), o)
		}
		return nil
	}
}

func (t *target) open(context string) (*cluster.Cluster, error) {
	return cluster.Open(cluster.Options{Kubeconfig: t.kubeconfig, Context: context, Namespace: t.namespace})
}

// waiting bounds what comes; the cause says why it ended.
func (t *target) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, t.timeout, &exitError{exitWaitOver, fmt.Errorf("not within %s; --timeout gives it longer", t.timeout)})
}

// installFlags are those of install and upgrade.
type installFlags struct {
	target
	context, cluster, image string
	values, set             []string
	wait, reset             bool
}

func (a *app) installCommand() *cobra.Command {
	var f installFlags
	c := &cobra.Command{
		Use:   "install",
		Short: "Install strait in a Kubernetes cluster",
		Long: `Install strait's DaemonSet, its rights and the CRDs in the cluster of a kubeconfig's context, by server-side apply of
the same chart that Helm would. Done again, it changes only what differs. What a command sets stays set: later
ones add to it.

Values are those of the chart: docs/kubernetes.md lists them.`,
		Example: `  strait install --context c1 --cluster us-east
  strait install --context c1 --cluster us-east --image registry.example/strait
  strait install --context c1 --cluster us-east --set mesh.implementation=userspace
  strait install --context c1 --cluster us-east --dry-run`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.install(cmd.Context(), f, false) },
	}
	f.declare(c)
	return c
}

func (a *app) upgradeCommand() *cobra.Command {
	var f installFlags
	c := &cobra.Command{
		Use:   "upgrade",
		Short: "Bring strait in a Kubernetes cluster to this version, or change its values",
		Long: `Bring strait in the cluster of a context to this program's version, and change the values that are given; others stay
as install or an earlier upgrade set them, an image's tag among them. Node by node: no connection breaks. Pods that serve a
userspace tunnel are left to you; it says how to replace them.`,
		Example: `  strait upgrade --context c1
  strait upgrade --context c1 --set log.level=debug`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.install(cmd.Context(), f, true) },
	}
	f.declare(c)
	c.Flags().BoolVar(&f.reset, "reset-values", false, "forget the values that were set before")
	return c
}

func (f *installFlags) declare(c *cobra.Command) {
	c.Flags().StringVar(&f.context, "context", "", "`name` of the kubeconfig's context (default: the current one)")
	f.flags(c)
	c.Flags().StringVar(&f.cluster, "cluster", "", "this cluster's `id` in the clusterset, a DNS label")
	c.Flags().StringVar(&f.image, "image", "", "image `reference`; without a tag that of this program's version (default: localhost/strait, loaded on the nodes)")
	c.Flags().StringArrayVar(&f.set, "set", nil, "set a value: `name=value`; may be repeated")
	c.Flags().StringArrayVar(&f.values, "values", nil, "YAML `file` with values; may be repeated")
	c.Flags().BoolVar(&f.wait, "wait", true, "wait until strait runs on every node")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be done, and do nothing")
}

func (a *app) install(ctx context.Context, f installFlags, upgrade bool) error {
	c, err := f.open(f.context)
	if err != nil {
		return err
	}
	p := a.printer()
	given, err := f.read()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if err := c.OnlyHere(ctx); err != nil {
		return err
	}
	before, found, err := c.Values(ctx)
	if err != nil {
		return err
	}
	if upgrade && !found {
		return fmt.Errorf("context %s: there is no strait to upgrade; install it: strait install --context %s --cluster NAME", c.Context, c.Context)
	}
	if f.reset {
		before = nil
	}
	values := chart.Merge(before, given)
	if err := clusterID(ctx, c, values); err != nil {
		return err
	}
	p.line("%s: strait %s into the namespace %s", c.Context, thisVersion().Version, c.Namespace)
	if pin := imagePin(before, given); upgrade && pin != "" {
		p.line("! %s: the image stays at %s, as it was set: --image names another", c.Context, pin)
	}
	if err := a.applyChart(ctx, c, values, f.dryRun); err != nil {
		return err
	}
	if f.dryRun {
		p.line("dry run: nothing was changed")
		return nil
	}
	if f.wait {
		if err := a.waitDaemons(ctx, c, f.target, values); err != nil {
			return err
		}
	}
	if !upgrade {
		p.line("next: strait clusterset connect --context %s --context OTHER", c.Context)
	}
	return nil
}

// read merges --values, --set and the flags that stand for values.
func (f *installFlags) read() (chart.Values, error) {
	var docs [][]byte
	for _, file := range f.values {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--values: %w", err)
		}
		docs = append(docs, text)
	}
	values, err := chart.Read(docs, f.set)
	if err != nil {
		return nil, err
	}
	if f.cluster != "" {
		values = chart.Merge(values, chart.Values{"cluster": f.cluster})
	}
	if f.image != "" {
		values = chart.Merge(values, chart.Values{"image": splitImage(f.image)})
	}
	return values, nil
}

// clusterID makes sure that there is an id: a daemon without one would not start.
func clusterID(ctx context.Context, c *cluster.Cluster, values chart.Values) error {
	if id := values["cluster"]; id != nil && id != "" {
		return nil // the chart says what is wrong with it, if something is
	}
	id, err := c.PropertyID(ctx)
	if err == nil && id == "" {
		err = &exitError{exitUsage, fmt.Errorf("context %s: the cluster has no id in the clusterset: give it one, a DNS label that no other cluster has: --cluster NAME", c.Context)}
	}
	return err
}

// applyChart applies the Secret, if there is none yet, and the chart; and takes away what the chart no longer has.
func (a *app) applyChart(ctx context.Context, c *cluster.Cluster, values chart.Values, dryRun bool) error {
	have, err := c.ReadBundle(ctx)
	if err != nil {
		return err
	}
	b := bundle.Bundle{Version: bundle.Version}
	if have != nil {
		b = *have
	} else {
		b.GossipKey = freshKey()
	}
	stored, err := yaml.Marshal(values)
	if err != nil {
		return err
	}
	docs, err := chart.Render(chart.Options{
		Namespace: c.Namespace, Version: thisVersion().Version,
		Values: chart.Merge(values, chart.Values{
			"createNamespace": true,
			// The pods are of the key that they are started with: see cluster.RollDaemons.
			"podAnnotations": map[string]any{cluster.HashAnnotation: b.Hash()},
		}),
	})
	if err != nil {
		return &exitError{exitUsage, err}
	}
	docs = append(docs, c.ValuesObject(stored))
	// The namespace first, then what the pods wait for.
	changes, err := c.Apply(ctx, docs[:1], dryRun)
	if err == nil && have == nil && !dryRun {
		var made cluster.Change
		made, err = c.WriteBundle(ctx, b, "")
		changes = append(changes, made)
	}
	a.printChanges(changes)
	if err != nil {
		return err
	}
	changes, err = c.Apply(ctx, docs[1:], dryRun)
	a.printChanges(changes)
	if err != nil {
		return err
	}
	changes, err = c.Prune(ctx, docs, dryRun)
	a.printChanges(changes)
	return err
}

// freshKey makes a gossip key.
func freshKey() bundle.Key {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	return bundle.NewKey(random)
}

// waitDaemons waits for the tunnel's and the daemon's pods.
func (a *app) waitDaemons(ctx context.Context, c *cluster.Cluster, t target, values chart.Values) error {
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	p := a.printer()
	names := []string{cluster.Daemon}
	if mesh, _ := values["mesh"].(map[string]any); cmp.Or(mesh["mode"], "wireguard") == any("wireguard") && mesh["implementation"] == "userspace" {
		names = []string{cluster.Tunnel, cluster.Daemon}
	}
	for _, name := range names {
		pods, err := c.WaitDaemonSet(ctx, name, func(s string) { p.line("%s: %s", c.Context, s) })
		if err != nil {
			return waitOver(err)
		}
		p.line("%s: %s runs on %d nodes", c.Context, name, pods)
	}
	return a.oldTunnels(ctx, c, names[0])
}

// oldTunnels says which pods an upgrade does not replace.
func (a *app) oldTunnels(ctx context.Context, c *cluster.Cluster, name string) error {
	if name != cluster.Tunnel {
		return nil
	}
	old, err := c.Outdated(ctx, name)
	if old > 0 {
		p := a.printer()
		p.line("! %s: %d pods of %s are as they were before this change, and go on. Packets wait while one is replaced; node by node, when it suits:", c.Context, old, name)
		p.line("  kubectl --context %s -n %s delete pod -l app.kubernetes.io/component=tunnel --field-selector spec.nodeName=NODE", c.Context, c.Namespace)
	}
	return err
}

// waitOver gives a wait that ran out its exit code, and keeps what was missing.
func waitOver(err error) error {
	var over *exitError
	if errors.As(err, &over) && over.code == exitWaitOver {
		return &exitError{exitWaitOver, err}
	}
	return err
}

// printChanges prints what was done; what was not needed is counted.
func (a *app) printChanges(changes []cluster.Change) {
	p := a.printer()
	for _, c := range changes {
		why := ""
		if c.Why != "" {
			why = " (" + c.Why + ")"
		}
		if c.Did != "unchanged" {
			p.line("  %-8s %s %s%s", c.Did, c.Kind, c.Name, why)
		}
	}
}
