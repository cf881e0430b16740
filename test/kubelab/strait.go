package kubelab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/install/image/oci"
)

// Strait is what to install: the CLI, an image file and the image's reference.
type Strait struct {
	CLI, ImageFile, Image string
}

// BuildStrait builds strait and its image from source into a folder, as make build and make image
// do.
func BuildStrait(ctx context.Context, source, dir string) (Strait, error) {
	// Each build has its own tag and file, because pods of an earlier build can still ask for
	// theirs.
	tag := fmt.Sprintf("built-%d", time.Now().Unix())
	s := Strait{CLI: filepath.Join(dir, "strait"), ImageFile: filepath.Join(dir, "strait-"+tag+".tar"), Image: "localhost/strait:" + tag}
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w -X main.version="+tag, "-o", dir+"/", "./cmd/straitd", "./cmd/strait")
	cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return s, fmt.Errorf("build strait: %w\n%s", err, out)
	}
	root := filepath.Join(dir, "root")
	for _, name := range []string{"straitd", "strait"} {
		if err := copyInto(root, filepath.Join(dir, name), "/"+name); err != nil {
			return s, err
		}
	}
	image := oci.Image{Names: []string{s.Image}, Root: root, Arch: runtime.GOARCH, Entrypoint: []string{"/straitd"}}
	_, err := oci.Write(s.ImageFile, image)
	return s, err
}

// InstallStrait does what a user does: it loads the image on all nodes, installs strait in each
// cluster under the cluster's name, connects the clusters and sets up their DNS. connect waits
// until handshakes are seen in both directions.
func (l *Lab) InstallStrait(ctx context.Context, s Strait) error {
	if err := l.Import(ctx, s.ImageFile); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, c := range l.Topology.Clusters {
		g.Go(func() error {
			args := append([]string{"install", "--cluster", c.Name, "--image", s.Image}, Settings...)
			return l.strait(gctx, s, c.Name, args...)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	connect := []string{"clusterset", "connect", "--yes", "--kubeconfig", l.Kubeconfig()}
	for _, c := range l.Topology.Clusters {
		connect = append(connect, "--context", c.Name)
	}
	if _, err := run(ctx, nil, append([]string{s.CLI}, connect...)...); err != nil {
		return fmt.Errorf("connect the clusters: %w", err)
	}
	for _, c := range l.Topology.Clusters {
		if err := l.strait(ctx, s, c.Name, "dns", "setup"); err != nil {
			return err
		}
	}
	return nil
}

// Settings are the chart values that strait needs on the lab's nodes: the kernel has no WireGuard,
// each node has its own cgroup, and there is no capability to lift limits. Cordoned nodes are
// drained, as users can choose.
var Settings = []string{
	"--set", "mesh.implementation=userspace", "--set", "bpf.liftMemoryLimit=false",
	"--set", "config.source.kubernetes.drainCordoned=true",
	"--set", "cgroup.hostPath=" + NodeCgroup, "--set", "cgroup.path=" + NodeCgroup, "--set", "cgroup.allowVirtualRoot=true",
}

// traces lists what strait may leave on a node.
const traces = `ls -d /sys/fs/bpf/strait /var/lib/strait /run/strait /var/run/wireguard/* 2>/dev/null
ip -o link show | grep -i strait
(ip -4 rule; ip -6 rule) | grep -w 5354
for family in -4 -6; do ip $family route show table all proto 154; done
nft list tables | grep -i strait
grep -lz '^/straitd' /proc/[0-9]*/cmdline 2>/dev/null
true`

// Traces returns what there is of strait on a node, a line each.
func (l *Lab) Traces(ctx context.Context, node string) (string, error) {
	return l.OnNode(ctx, node, "sh", "-c", traces)
}

// HasTraces returns nil if Traces finds everything that strait has on a node where InstallStrait
// put it. If it did not, it would not see that stay either.
func (l *Lab) HasTraces(ctx context.Context, node string) error {
	out, err := l.Traces(ctx, node)
	if err != nil {
		return err
	}
	for _, want := range []string{
		"/sys/fs/bpf/strait", "/var/lib/strait", "/run/strait", "strait0.sock", "strait0:", "lookup 5354",
		"dev strait0 table 5354", "table inet strait", "/cmdline",
	} {
		if !strings.Contains(out, want) {
			return fmt.Errorf("%s: strait runs there, and %q is not found of it in:\n%s", node, want, out)
		}
	}
	return nil
}

func (l *Lab) strait(ctx context.Context, s Strait, cluster string, args ...string) error {
	args = append(append([]string{s.CLI}, args...), "--kubeconfig", l.Kubeconfig(), "--context", cluster)
	if _, err := run(ctx, nil, args...); err != nil {
		return fmt.Errorf("cluster %s: %w", cluster, err)
	}
	return nil
}
