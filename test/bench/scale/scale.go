// Package scale measures straitd against a real API server that holds a large cluster.
//
// Inputs are the sizes and the programs in the cache. Outputs are metrics by name: memory, time
// from a change to the kernel's maps, writes to the API server. The cluster has no machines: this
// package writes its objects, and plays the daemons of its other nodes with gossip only. It must
// use straitd as a user does.
package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/fabric"
	"strait.io/strait/test/kubelab"
)

// Options say how large the cluster is, and where the lab is built.
type Options struct {
	// Services is the number of Services, all of them exported. Each has the given number of
	// Endpoints, at most 200, each on another node.
	Services, Endpoints int
	// Changes is how many changes of one endpoint are timed through the API server, Turns how many
	// through gossip.
	Changes, Turns int
	// Mirrors is the number of the other cluster's Services of which a ServicePolicy makes mirrors, at
	// most 65,536.
	Mirrors int
	// Peers is the number of nodes in the other cluster, from 10 to 10,000. They are straitd's
	// peers in the tunnel.
	Peers int
	// Rest is how long nothing happens after the peers have joined, and again before the memory of
	// the idle daemon is read.
	Rest time.Duration
	// Lab must have Dir, Programs and Source; Log is optional.
	Lab kubelab.Options
}

// role is the environment variable that names the job file of the measuring process, which runs in
// the API server's network namespace.
const role = "STRAIT_SCALE_JOB"

// job is the content of the measuring process's job file.
type job struct {
	Dir, Kubeconfig, Cgroup, Straitd string
	Services, Endpoints              int
	Changes, Turns, Mirrors, Peers   int
	Rest                             time.Duration
}

// IsInner reports whether Measure started this process. If so, main must call Inner and nothing
// else.
func IsInner() bool { return os.Getenv(role) != "" }

// Measure brings an API server up, runs this program again as the measuring process, and removes
// everything that was made. Progress goes to standard error.
func Measure(ctx context.Context, o Options) (metrics map[string]float64, err error) {
	o.Lab.Clusters, o.Lab.Nodes = 1, 0
	if o.Lab.Log == nil {
		o.Lab.Log = slog.New(slog.DiscardHandler)
	}
	l, err := kubelab.Up(ctx, o.Lab)
	if err != nil {
		return nil, err
	}
	defer os.Remove(socket) // once Down has ended the process
	defer func() { err = errors.Join(err, l.Down(context.WithoutCancel(ctx))) }()
	j := job{
		Dir: filepath.Join(l.Dir, "scale"), Cgroup: l.CgroupOf("scale"), Services: o.Services, Endpoints: o.Endpoints,
		Changes: o.Changes, Turns: o.Turns, Mirrors: o.Mirrors, Peers: o.Peers, Rest: o.Rest,
	}
	j.Kubeconfig, j.Straitd = filepath.Join(j.Dir, "kubeconfig"), filepath.Join(j.Dir, "straitd")
	if err := prepare(ctx, l, o.Lab.Source, j); err != nil {
		return nil, err
	}
	crd, err := os.ReadFile(filepath.Join(o.Lab.Source, "install", "chart", "strait", "files", "strait.io_servicepolicies.yaml"))
	if err == nil {
		err = l.Apply(ctx, "c1", string(crd))
	}
	if err != nil {
		return nil, err
	}
	if err := runInner(ctx, l, j); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(j.Dir, "metrics.json"))
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return metrics, json.Unmarshal(text, &metrics)
}

var serverLine = regexp.MustCompile(`"server": "[^"]*"`)

// prepare makes the folder with straitd, and a kubeconfig that works in the API server's network
// namespace.
func prepare(ctx context.Context, l *kubelab.Lab, source string, j job) error {
	if err := errors.Join(os.MkdirAll(j.Dir, 0o755), fabric.MakeCgroups(j.Cgroup, "straitd")); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", j.Straitd, "./cmd/straitd")
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build straitd: %w\n%s", err, out)
	}
	config, err := os.ReadFile(l.ConfigOf("c1"))
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	inside := fmt.Sprintf(`"server": "https://%s:6443"`, l.Topology.Clusters[0].Gateway)
	return os.WriteFile(j.Kubeconfig, serverLine.ReplaceAll(config, []byte(inside)), 0o600)
}

func runInner(ctx context.Context, l *kubelab.Lab, j job) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	file := filepath.Join(j.Dir, "job.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	cg, err := os.Open(j.Cgroup)
	if err != nil {
		return err
	}
	defer cg.Close()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), role+"="+file)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	// Not Unshareflags: with those Go makes mounts private, which fails in a chroot.
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cg.Fd()), Cloneflags: unix.CLONE_NEWNS}
	if err := fabric.InsideNamed(l.Name+"-fabric", cmd.Start); err != nil {
		return fmt.Errorf("start the measuring process: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	return nil
}
