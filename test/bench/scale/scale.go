// Package scale measures straitd against a real API server that holds a large cluster.
//
// Inputs are the sizes and the programs in the cache; outputs are metrics by name: memory, time from a change to the
// kernel's maps, writes to the API server. The cluster has no machines: its objects are written by hand, and what the
// daemons of its other nodes would say is said by gossip alone. It must use straitd as a user does.
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

// Options say how large the cluster is, and where the lab is to be.
type Options struct {
	// Services are all exported; each has so many Endpoints, at most 200, on as many nodes.
	Services, Endpoints int
	// Changes of one endpoint each that are timed, by the API server, and Turns, by gossip.
	Changes, Turns int
	// Peers are the nodes of another cluster, at least 10 and at most 10,000: straitd's peers in the tunnel.
	Peers int
	// Rest is how long nothing happens after the peers have come, and before the memory of a daemon at rest is read.
	Rest time.Duration
	// Lab has Dir, Programs, Source and Log.
	Lab kubelab.Options
}

// role tells the process that measures where its work is described: it lives in the namespaces of the API server.
const role = "STRAIT_SCALE_JOB"

// job is what the measuring process is told, as a file.
type job struct {
	Dir, Kubeconfig, Cgroup, Straitd string
	Services, Endpoints              int
	Changes, Turns, Peers            int
	Rest                             time.Duration
}

// IsInner reports whether this process is one that Measure started: then main must call Inner and nothing else.
func IsInner() bool { return os.Getenv(role) != "" }

// Measure brings an API server up, measures in a process of its own, which is this program again, and removes all that
// was made. Progress goes to standard error.
func Measure(ctx context.Context, o Options) (metrics map[string]float64, err error) {
	o.Lab.Clusters, o.Lab.Nodes = 1, 0
	if o.Lab.Log == nil {
		o.Lab.Log = slog.New(slog.DiscardHandler)
	}
	l, err := kubelab.Up(ctx, o.Lab)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Down(context.WithoutCancel(ctx))) }()
	j := job{
		Dir: filepath.Join(l.Dir, "scale"), Cgroup: l.CgroupOf("scale"), Services: o.Services, Endpoints: o.Endpoints,
		Changes: o.Changes, Turns: o.Turns, Peers: o.Peers, Rest: o.Rest,
	}
	j.Kubeconfig, j.Straitd = filepath.Join(j.Dir, "kubeconfig"), filepath.Join(j.Dir, "straitd")
	if err := prepare(ctx, l, o.Lab.Source, j); err != nil {
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

// prepare makes the folder with straitd, and a kubeconfig for who is in the API server's own network namespace.
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
	// Not Unshareflags, with which Go makes mounts private: that fails in a chroot.
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cg.Fd()), Cloneflags: unix.CLONE_NEWNS}
	if err := fabric.InsideNamed(l.Name+"-fabric", cmd.Start); err != nil {
		return fmt.Errorf("start the measuring process: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	return nil
}
