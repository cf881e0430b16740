package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/test/bench/replication"
	"strait.io/strait/test/bench/stats"
)

const (
	// scratchPrefix and the process ID begin the names of everything that the bench makes, so that
	// what a killed bench left behind can be found.
	scratchPrefix = "strait-t-bench-"
	// dirEnv and cgroupEnv tell the inner process its scratch directory and its cgroup.
	dirEnv    = "STRAIT_BENCH_DIR"
	cgroupEnv = "STRAIT_BENCH_CGROUP"
)

// outer makes a cgroup and a directory, runs the inner process there in its own namespaces, and
// removes both. What the inner process makes disappears with its namespaces.
func outer(ctx context.Context, o options) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("loading eBPF programs and making namespaces needs root: run `sudo make bench`")
	}
	if err := o.check(); err != nil {
		return err
	}
	if _, err := exec.LookPath("nft"); err != nil && (o.wants(phaseProxy) || o.wants(phaseCilium)) {
		return errors.New("loading kube-proxy's rules needs nft: run `apt-get install nftables`")
	}
	mount, err := cgroupMount()
	if err != nil {
		return err
	}
	scratch := fmt.Sprintf("%s%d-", scratchPrefix, os.Getpid())
	cgroup, err := os.MkdirTemp(mount, scratch)
	if err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	defer func() { err = errors.Join(err, removeCgroups(cgroup)) }()
	dir, err := os.MkdirTemp("", scratch)
	if err != nil {
		return err
	}
	defer func() {
		// In a chroot the inner process's mount can have propagated to this namespace. Otherwise
		// there is none.
		_ = unix.Unmount(pinsIn(dir), unix.MNT_DETACH)
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	r := result{Machine: thisMachine(), Metrics: map[string]summary{}}
	if !o.onlySides() {
		if r, err = measureDatapath(ctx, o, cgroup, dir); err != nil {
			return err
		}
	}
	if err := measureDaemons(ctx, o, dir, &r); err != nil {
		return err
	}
	var replicated, kube result
	if o.wants(phaseReplication) {
		if replicated, err = aside(ctx, o, measureReplication); err != nil {
			return fmt.Errorf("replication: %w", err)
		}
	}
	if o.wantsKube() {
		if kube, err = aside(ctx, o, measureKube); err != nil {
			return fmt.Errorf("kube: %w", err)
		}
	}
	return publish(o, r, replicated, kube)
}

// aside measures what has a table of its own.
func aside(ctx context.Context, o options, measure func(context.Context, options) (map[string]float64, error)) (result, error) {
	r := result{Machine: thisMachine(), Metrics: map[string]summary{}}
	start := time.Now()
	metrics, err := measure(ctx, o)
	if err != nil {
		return r, err
	}
	for metric, v := range metrics {
		r.Metrics[metric] = summary(stats.Exactly(v))
	}
	r.Took, r.Machine.LoadAfter = time.Since(start), loadAverage()
	return r, nil
}

func measureReplication(ctx context.Context, o options) (map[string]float64, error) {
	if o.Quick {
		return replication.Measure(ctx, replication.Size{Clusters: 2, Nodes: 12, Daemons: 24, Rest: time.Second})
	}
	return replication.Measure(ctx, replication.Size{Clusters: 10, Nodes: 100, Daemons: 60, Rest: 30 * time.Second})
}

// measureDatapath runs the inner process.
func measureDatapath(ctx context.Context, o options, cgroup, dir string) (result, error) {
	missing, err := buildCilium(ctx, o, dir)
	if err != nil {
		return result{}, err
	}
	if err := runInner(ctx, cgroup, dir, ciliumMissingEnv+"="+missing); err != nil {
		return result{}, err
	}
	return readResult(filepath.Join(dir, resultFile))
}

// measureDaemons runs the phases that are programs of their own.
func measureDaemons(ctx context.Context, o options, dir string, r *result) error {
	if o.wants(phaseDemo) {
		if err := measureDemo(ctx, o, dir, r); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
	}
	if o.wantsAttack() {
		if err := measureAttack(ctx, dir, r); err != nil {
			return fmt.Errorf("attack: %w", err)
		}
	}
	return nil
}

func runInner(ctx context.Context, cgroup, dir string, env ...string) error {
	c, err := os.Open(cgroup)
	if err != nil {
		return err
	}
	defer c.Close()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(append(os.Environ(), env...), roleEnv+"="+roleInner, cgroupEnv+"="+cgroup, dirEnv+"="+dir,
		// Without this, the runtime's preemption signals would interrupt what is measured.
		"GODEBUG=asyncpreemptoff=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		UseCgroupFD: true, CgroupFD: int(c.Fd()),
		// Not Unshareflags: with those Go makes mounts private, which fails in a chroot.
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS,
	}
	life, err := cmd.StdinPipe() // the inner process exits when this closes
	if err != nil {
		return err
	}
	defer life.Close()
	return cmd.Run()
}

// pinsIn returns where the bpffs is mounted.
func pinsIn(dir string) string { return filepath.Join(dir, "bpf") }

// privateMounts stops this process's mounts from propagating to other namespaces. It does nothing
// in a chroot whose / is not a mount point. outer cleans up in that case.
func privateMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("make mounts private: %w", err)
	}
	return nil
}

// exitWithParent ends this process when its parent is gone, however the parent ended.
func exitWithParent(stdin io.Reader) {
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		os.Exit(1)
	}()
}

// cgroupMount returns where the whole cgroup v2 tree is mounted.
func cgroupMount() (string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		mount, source, _ := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(mount)
		if strings.HasPrefix(source, "cgroup2 ") && len(fields) >= 5 && fields[3] == "/" {
			return fields[4], nil
		}
	}
	return "", errors.New("cgroup v2 is not mounted: run `mount -t cgroup2 none DIRECTORY`")
}

// removeCgroups removes a cgroup and its children, deepest first. It retries, because a process
// that was just killed leaves its cgroup only a moment later.
func removeCgroups(top string) error {
	var dirs []string
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, d := range slices.Backward(dirs) {
		deadline := time.Now().Add(5 * time.Second)
		for err = os.Remove(d); errors.Is(err, unix.EBUSY) && time.Now().Before(deadline); err = os.Remove(d) {
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("remove cgroup: %w", err)
		}
	}
	return nil
}
