package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"strait.io/strait/cli"
	"strait.io/strait/install/bundle"
	"strait.io/strait/install/chart"
	"strait.io/strait/install/cluster"
	"strait.io/strait/install/preflight"
)

// installFlags are the flags of install and upgrade.
type installFlags struct {
	target
	context, cluster, image string
	authority               string
	values, set             []string
	wait, reset             bool
	upgradeCRDs             bool
}

func InstallCommand(a *cli.App) *cobra.Command {
	var f installFlags
	c := &cobra.Command{
		Use:   "install",
		Short: "Install strait in a Kubernetes cluster",
		Long: `Install strait's workloads, its RBAC rules and the CRDs in the cluster of a kubeconfig context, by
server-side apply of the same chart that Helm would use. Running it again changes only what differs.
Values that one command sets are kept; later commands add to them.

The image defaults to that of the registry for which this program was released or built. For a build
of your own, it is localhost/strait, which you load on every node. Its tag defaults to this version.
The values are those of the chart: docs/kubernetes.md lists them.`,
		Example: `  strait install --context c1 --cluster us-east --image registry.example/strait
  strait install --context c1 --cluster us-east --set mesh.implementation=userspace --dry-run`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return install(cmd.Context(), a, f, false) },
	}
	f.declare(c)
	return c
}

func (f *installFlags) declare(c *cobra.Command) {
	c.Flags().StringVar(&f.context, "context", "", "`name` of the kubeconfig context (default: the current one)")
	f.flags(c)
	c.Flags().StringVar(&f.cluster, "cluster", "", "this cluster's `id` in the clusterset, a DNS label")
	c.Flags().StringVar(&f.image, "image", "", "`image` to run; its tag defaults to this version")
	c.Flags().StringVar(&f.authority, "authority", "", "`mode`: auto, pinned, or off to trust every holder of the gossip key")
	c.Flags().StringArrayVar(&f.set, "set", nil, "set a chart value, `name=value`; repeatable")
	c.Flags().StringArrayVar(&f.values, "values", nil, "YAML `file` with chart values; repeatable")
	c.Flags().BoolVar(&f.upgradeCRDs, "upgrade-crds", false, "add versions to CRDs of the MCS API that another program installed")
	c.Flags().BoolVar(&f.wait, "wait", true, "wait until strait runs on every node")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be done, and change nothing")
}

// intent is what a run of install or upgrade is to bring about in a cluster.
type intent struct {
	*cluster.Cluster
	values chart.Values
	// pin is the image's tag or digest that an earlier command set, and this one does not.
	pin string
	// found is true if strait is installed.
	found bool
}

// intend reads what is installed, and merges its values with those that are given.
func intend(ctx context.Context, f installFlags, upgrade bool) (i intent, err error) {
	if i.Cluster, err = f.open(f.context); err != nil {
		return i, err
	}
	i.UpgradeCRDs = f.upgradeCRDs
	given, err := f.read()
	if err != nil {
		return i, cli.Exit(cli.ExitUsage, err)
	}
	if err := i.OnlyHere(ctx); err != nil {
		return i, err
	}
	before, found, err := i.Values(ctx)
	if err != nil {
		return i, err
	}
	if upgrade && !found {
		return i, fmt.Errorf("context %s: strait is not installed; install it: strait install --context %s --cluster NAME", i.Context, i.Context)
	}
	was := before
	if f.reset {
		before = nil
	}
	i.found, i.values, i.pin = found, chart.Merge(before, given), imagePin(before, given)
	if err := sameID(i.Context, was, i.values); err != nil {
		return i, cli.Exit(cli.ExitUsage, err)
	}
	return i, clusterID(ctx, i.Cluster, i.values)
}

func install(ctx context.Context, a *cli.App, f installFlags, upgrade bool) error {
	i, err := intend(ctx, f, upgrade)
	if err != nil {
		return err
	}
	c, values, p := i.Cluster, i.values, a.Printer()
	joined, err := c.ReadBundle(ctx)
	if err != nil {
		return err
	}
	p.Line("%s: applying strait %s in namespace %s", c.Context, a.ThisVersion().Version, c.Namespace)
	if upgrade && i.pin != "" {
		p.Line("! %s: the image stays at %s, as set earlier; use --image to name another", c.Context, i.pin)
	}
	if err := applyChart(ctx, a, c, values, f.dryRun); err != nil {
		return err
	}
	if f.dryRun {
		p.Line("dry run: nothing was changed")
		return nil
	}
	if !i.found && joined == nil {
		err = firstKeys(ctx, a, c, values)
	}
	if err == nil && f.wait {
		err = waitDaemons(ctx, a, c, f.target, values)
	}
	if err == nil && !upgrade {
		p.Line("next: strait clusterset connect --context %s --context OTHER", c.Context)
	}
	return err
}

// read merges --values, --set and the flags that set a value: --cluster and --image.
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
	if f.authority != "" {
		values = chart.Merge(values, chart.Values{"authority": map[string]any{"mode": f.authority}})
	}
	if f.image != "" {
		values = chart.Merge(values, chart.Values{"image": splitImage(f.image)})
	}
	return values, nil
}

// clusterID returns an error if the cluster has no id: a daemon without one would not start.
func clusterID(ctx context.Context, c *cluster.Cluster, values chart.Values) error {
	if id := values["cluster"]; id != nil && id != "" {
		return nil // rendering the chart checks it
	}
	id, err := c.PropertyID(ctx)
	if err == nil && id == "" {
		err = cli.Exit(cli.ExitUsage, fmt.Errorf("context %s: the cluster has no id in the clusterset; give it one with --cluster NAME: a DNS label that no other cluster has", c.Context))
	}
	return err
}

// sameID returns an error if the values give another id to a cluster that is in the clusterset.
// The other clusters would keep the old id as a cluster that they have lost.
func sameID(context string, was, now chart.Values) error {
	had, has := was["cluster"], now["cluster"]
	if had == nil || had == "" || has == nil || has == had {
		return nil
	}
	return fmt.Errorf("context %s: cluster: it is %v in the clusterset, and %v would be a second cluster to the others; "+
		"leave --cluster %v, or give it a new id this way: strait uninstall --context %s, then install again", context, had, has, had, context)
}

// render returns the objects of the chart, and the ConfigMap that keeps the values.
func render(a *cli.App, c *cluster.Cluster, values chart.Values, b bundle.Bundle) ([][]byte, error) {
	stored, err := yaml.Marshal(values)
	if err != nil {
		return nil, err
	}
	apis, err := c.APIs()
	if err != nil {
		return nil, err
	}
	docs, err := chart.Render(chart.Options{
		Namespace: c.Namespace, Version: a.ThisVersion().Version, APIs: apis,
		Values: chart.Merge(values, chart.Values{
			"createNamespace": true,
			// Pods keep the key that they were started with: see cluster.RollDaemons.
			"podAnnotations": map[string]any{cluster.HashAnnotation: b.Hash()},
		}),
	})
	if err != nil {
		return nil, cli.Exit(cli.ExitUsage, err)
	}
	return append(docs, c.ValuesObject(stored)), nil
}

// applyChart creates the Secret if there is none yet, applies the chart, and deletes what the chart
// no longer contains.
func applyChart(ctx context.Context, a *cli.App, c *cluster.Cluster, values chart.Values, dryRun bool) error {
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
	docs, err := render(a, c, values, b)
	if err != nil {
		return err
	}
	a.Printer().Line("%s: image %s", c.Context, daemonImage(docs))
	if err := warnKept(ctx, a, c); err != nil {
		return err
	}
	if err := warnPreflight(ctx, a, c, values); err != nil {
		return err
	}
	// The namespace first, then what the pods wait for.
	changes, err := c.Apply(ctx, docs[:1], dryRun)
	printChanges(a, changes)
	if err != nil {
		return err
	}
	if !dryRun {
		if err := makeSecrets(ctx, a, c, b, have == nil, values); err != nil {
			return err
		}
	}
	changes, err = c.Apply(ctx, docs[1:], dryRun)
	printChanges(a, changes)
	if err != nil {
		return err
	}
	changes, err = c.Prune(ctx, docs, dryRun)
	printChanges(a, changes)
	return err
}

// makeSecrets makes what the pods wait for: the Secret of the clusterset if it is fresh, the pins where versions
// before this one kept them elsewhere, and the token of strait-view.
func makeSecrets(ctx context.Context, a *cli.App, c *cluster.Cluster, b bundle.Bundle, fresh bool, values chart.Values) error {
	if fresh {
		made, err := c.WriteBundle(ctx, b, "")
		if err != nil {
			return err
		}
		printChanges(a, []cluster.Change{made})
	}
	moved, err := c.MovePins(ctx)
	printChanges(a, moved)
	if err != nil {
		return err
	}
	if view, _ := values["view"].(map[string]any); view["enabled"] == any(false) {
		return nil
	}
	made, err := c.MakeViewToken(ctx)
	printChanges(a, made)
	return err
}

// warnPreflight prints what the cluster's network and strait do to each other.
func warnPreflight(ctx context.Context, a *cli.App, c *cluster.Cluster, values chart.Values) error {
	cgroup, _ := values["cgroup"].(map[string]any)
	cilium, err := c.ReadCilium(ctx)
	gateways, err2 := c.ReadOVN(ctx)
	for _, warning := range slices.Concat(preflight.Cilium(cilium).Warnings(cgroup["belowRoot"] == true), preflight.OVN(gateways).Warnings()) {
		a.Printer().Line("! %s: %s", c.Context, warning)
	}
	return errors.Join(err, err2)
}

// freshKey makes a gossip key.
func freshKey() bundle.Key {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	return bundle.NewKey(random)
}

// waitDaemons waits for the pods of the tunnel, the daemon and strait-leader.
func waitDaemons(ctx context.Context, a *cli.App, c *cluster.Cluster, t target, values chart.Values) error {
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	p := a.Printer()
	names := []string{cluster.Daemon}
	if mesh, _ := values["mesh"].(map[string]any); cmp.Or(mesh["mode"], "wireguard") == any("wireguard") && mesh["implementation"] == "userspace" {
		names = []string{cluster.Tunnel, cluster.Daemon}
	}
	for _, name := range names {
		pods, err := c.WaitDaemonSet(ctx, name, func(s string) { p.Line("%s: %s", c.Context, s) })
		if err != nil {
			return waitOver(err)
		}
		p.Line("%s: %s runs on %d nodes", c.Context, name, pods)
		if name != cluster.Daemon || pods == 0 {
			continue // without nodes, no pod of strait-leader can run
		}
		if _, err := c.WaitLeader(ctx, func(s string) { p.Line("%s: %s", c.Context, s) }); err != nil {
			return waitOver(err)
		}
	}
	printDigests(ctx, a, c)
	return oldTunnels(ctx, a, c, names[0])
}

// printDigests prints which image the nodes run, if a registry knows it by a digest.
func printDigests(ctx context.Context, a *cli.App, c *cluster.Cluster) {
	found, err := c.Digests(ctx)
	if err != nil || len(found) == 0 {
		return // this is only for information
	}
	a.Printer().Line("%s: %s runs the image %s", c.Context, cluster.Daemon, strings.Join(found, " and "))
}

// oldTunnels prints how many tunnel pods the upgrade did not replace, and how to replace them.
func oldTunnels(ctx context.Context, a *cli.App, c *cluster.Cluster, name string) error {
	if name != cluster.Tunnel {
		return nil
	}
	old, err := c.Outdated(ctx, name)
	if old > 0 {
		p := a.Printer()
		p.Line("! %s: %d pods of %s were not replaced, and run on as before this change. Packets wait while one is replaced, so replace them node by node, when it suits:", c.Context, old, name)
		p.Line("  kubectl --context %s -n %s delete pod -l app.kubernetes.io/component=tunnel --field-selector spec.nodeName=NODE", c.Context, c.Namespace)
	}
	return err
}
