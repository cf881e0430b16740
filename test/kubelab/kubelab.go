// Package kubelab runs real Kubernetes clusters on one machine: etcd, API servers, controllers, and
// nodes with containerd, kubelet and kube-proxy. Each node is a set of namespaces with its own
// cgroup.
//
// Inputs are Options and the programs of package programs. Output is clusters, and a kubeconfig
// with addresses on this machine's loopback; Down leaves the machine as it was. Those listeners are
// all that the lab makes in the root network namespace. Of strait it knows only how a user installs
// it.
package kubelab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/internal/fabric"
)

// Options say what Up brings up, and where.
type Options struct {
	// Dir is the folder for all files. Up creates it, Down removes it. It must not be below /run,
	// /var/lib or /var/log, because each node has its own.
	Dir string
	// Programs is the folder that programs.Build returned. Source is the folder of strait's source.
	Programs, Source string
	// Clusters is 1 to MaxClusters. Nodes is per cluster, 0 to MaxNodes. Without nodes there are
	// API servers and objectControllers, and no scheduler.
	Clusters, Nodes int
	// WithoutPodCIDRs names the clusters whose Node objects have no podCIDRs.
	WithoutPodCIDRs []string
	// DualStack names the clusters whose API servers also give out IPv6 ClusterIPs. Their nodes
	// still have IPv4.
	DualStack []string
	// Oldest and Newest name the clusters whose API servers are of the oldest or the newest Kubernetes
	// that there is. Their other programs are those of other clusters.
	Oldest, Newest []string
	// CNIs gives clusters, by name, another pod network than the reference plug-in bridge, or ptp
	// if their nodes have no podCIDRs.
	CNIs map[string]CNI
	Log  *slog.Logger
}

// Lab is a set of clusters that are up.
type Lab struct {
	Topology
	Dir string
	state
	log *slog.Logger
	// cgroup2 is where cgroup v2 is mounted. cgroup1 is where the v1 controllers are mounted, if
	// any.
	cgroup2 string
	cgroup1 []string
}

// Up brings the clusters up and returns when every node is Ready and every cluster resolves names.
// It first removes what an earlier lab has left in the same folder. On error it removes what it
// made, except the logs in Dir/log. The error is ErrUnfit if this machine cannot run the lab.
func Up(ctx context.Context, o Options) (*Lab, error) {
	t, err := NewTopology(o.Clusters, o.Nodes, o.WithoutPodCIDRs...)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(o.DualStack, o.Oldest, o.Newest, slices.Sorted(maps.Keys(o.CNIs))) {
		if _, err := t.Cluster(name); err != nil {
			return nil, fmt.Errorf("dual stack, oldest, newest or CNI: %w", err)
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
		DualStack: o.DualStack, Oldest: o.Oldest, Newest: o.Newest, CNIs: o.CNIs, Name: nameOf(dir),
	}}
	if err := l.up(ctx, o); err != nil {
		return nil, errors.Join(err, l.remove(context.WithoutCancel(ctx), true))
	}
	return l, nil
}

// preflight checks for folders that would fail later, with a less clear error.
func preflight(dirs ...string) error {
	for _, dir := range dirs {
		for _, hidden := range []string{"/run", "/var/lib", "/var/log"} {
			if strings.HasPrefix(dir+"/", hidden+"/") {
				return fmt.Errorf("%s is below %s, where each node has its own files: use another folder", dir, hidden)
			}
		}
	}
	return nil
}

// clearOld removes an earlier lab in the same folder.
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

// buildOwn builds the lab's own two programs. They are not cached, because they change with its
// source.
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

// clusterUp brings one cluster up, from its certificates to a working resolver.
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

// Down kills every process of the lab and removes everything that it made. If something fails, it
// removes the rest but keeps the folder, and returns all errors. It can be called again.
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
