// Package kubelab makes real Kubernetes clusters on one machine: etcd, API servers, controllers, and nodes with
// containerd, kubelet and kube-proxy, each node a set of namespaces with a cgroup of its own.
//
// Input is Options and the programs of package programs; output are clusters, reached by a kubeconfig whose
// addresses are on this machine's loopback, and at the end a machine as it was. Nothing is made in the root
// network namespace but those listeners. Of strait it knows only how a user installs it.
package kubelab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/internal/fabric"
)

// Options say what to bring up and where.
type Options struct {
	// Dir is where everything on disk goes: it is made, and removed by Down. Not below /run, /var/lib or /var/log,
	// which are each node's own.
	Dir string
	// Programs is the folder that programs.Build returned, Source that of strait's source.
	Programs, Source string
	// Clusters is 1 to MaxClusters; Nodes, per cluster, 0 to MaxNodes. Without nodes there are API servers and the
	// controllers that make EndpointSlices and remove garbage, and no scheduler.
	Clusters, Nodes int
	// WithoutPodCIDRs names the clusters whose Node objects have no podCIDRs.
	WithoutPodCIDRs []string
	// DualStack names the clusters whose API servers also give out IPv6 ClusterIPs. Nodes have IPv4 all the same.
	DualStack []string
	Log       *slog.Logger
}

// Lab is a set of clusters that are up.
type Lab struct {
	Topology
	Dir string
	state
	log *slog.Logger
	// cgroup2 is where cgroup v2 is mounted, cgroup1 where the controllers of v1 are, if any.
	cgroup2 string
	cgroup1 []string
}

// Up brings the clusters up, after removing what an earlier lab in the same folder left, and returns when every
// node is Ready and every cluster resolves names. On error what was made is removed, except the logs in
// Dir/log. The error is ErrUnfit where this machine cannot run it.
func Up(ctx context.Context, o Options) (*Lab, error) {
	t, err := NewTopology(o.Clusters, o.Nodes, o.WithoutPodCIDRs...)
	if err != nil {
		return nil, err
	}
	for _, name := range o.DualStack {
		if _, err := t.Cluster(name); err != nil {
			return nil, fmt.Errorf("dual stack: %w", err)
		}
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", o.Dir, err)
	}
	if err := preflight(dir, o.Programs); err != nil {
		return nil, err
	}
	if err := clearOld(ctx, dir, o.Log); err != nil {
		return nil, err
	}
	if err := Fit(o.Clusters, o.Nodes); err != nil {
		return nil, err
	}
	l := &Lab{Topology: t, Dir: dir, log: o.Log, state: state{
		Programs: o.Programs, Clusters: o.Clusters, Nodes: o.Nodes, WithoutPodCIDRs: o.WithoutPodCIDRs,
		DualStack: o.DualStack, Name: nameOf(dir),
	}}
	if err := l.up(ctx, o); err != nil {
		return nil, errors.Join(err, l.remove(context.WithoutCancel(ctx), true))
	}
	return l, nil
}

// preflight says what would fail later, and less clearly.
func preflight(dirs ...string) error {
	for _, dir := range dirs {
		for _, hidden := range []string{"/run", "/var/lib", "/var/log"} {
			if strings.HasPrefix(dir+"/", hidden+"/") {
				return fmt.Errorf("%s is below %s, where each node has files of its own: use another folder", dir, hidden)
			}
		}
	}
	return nil
}

// clearOld removes an earlier lab of the same folder.
func clearOld(ctx context.Context, dir string, log *slog.Logger) error {
	old, err := Open(dir, log)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return old.Down(ctx)
}

func (l *Lab) up(ctx context.Context, o Options) error {
	if err := l.findCgroups(); err != nil {
		return err
	}
	if err := l.save(); err != nil {
		return err
	}
	if err := l.buildOwn(ctx, o.Source); err != nil {
		return err
	}
	if err := l.makeFabric(); err != nil {
		return err
	}
	if err := l.startEtcd(); err != nil {
		return err
	}
	if err := l.buildImages(ctx); err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	for i := range l.Topology.Clusters {
		all.Go(func() error { return l.clusterUp(ctx, &l.Topology.Clusters[i]) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	return l.writeKubeconfig()
}

// buildOwn builds the lab's two programs, which change with its source.
func (l *Lab) buildOwn(ctx context.Context, source string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w",
		"-o", l.path("bin")+"/", "./test/kubelab/init", "./test/kubelab/forward")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the lab's programs: %w\n%s", err, out)
	}
	return nil
}

// clusterUp brings one cluster up, from certificates to a resolver that answers.
func (l *Lab) clusterUp(ctx context.Context, c *Cluster) error {
	if err := l.makeCerts(c); err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	type step struct {
		done string
		do   func(context.Context, *Cluster) error
	}
	steps := []step{
		{"", l.startAPIServer},
		{"", l.startForward},
		{"API server is ready", l.awaitAPIServer},
		{"", l.startControllers},
		{"", l.applyBase},
	}
	if len(c.Nodes) > 0 {
		steps = append(steps, step{"nodes have their images", l.nodesUp}, step{"", l.applyDNS},
			step{"nodes and CoreDNS are ready", l.awaitReady})
	}
	start := time.Now()
	for _, s := range steps {
		if err := s.do(ctx, c); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		if s.done != "" {
			l.log.Info(s.done, "cluster", c.Name, "seconds", time.Since(start).Round(100*time.Millisecond).Seconds())
		}
	}
	return nil
}

// Down ends every process of the lab and removes everything that it made. It goes on after an error and reports
// all of them; it may be called again.
func (l *Lab) Down(ctx context.Context) error { return l.remove(ctx, false) }

func (l *Lab) remove(ctx context.Context, keepLogs bool) error {
	var errs []error
	for _, dir := range l.cgroups() {
		errs = append(errs, fabric.KillCgroup(ctx, dir))
	}
	for _, dir := range l.cgroups() {
		errs = append(errs, fabric.RemoveCgroup(dir))
	}
	for _, c := range l.Topology.Clusters {
		for _, n := range c.Nodes {
			errs = append(errs, fabric.RemoveNS(l.netns(n.Name)))
		}
	}
	errs = append(errs, fabric.RemoveNS(l.netns(fabricName)))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("take the lab down: %w", err)
	}
	if keepLogs {
		return l.keepLogs()
	}
	if err := os.RemoveAll(l.Dir); err != nil {
		return fmt.Errorf("remove folder of the lab: %w", err)
	}
	return nil
}
