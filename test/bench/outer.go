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

	"strait.io/strait/test/bench/stats"
)

const (
	// scratchPrefix, and its process ID, begin the names by which what a killed bench left behind would be found.
	scratchPrefix = "strait-t-bench-"
	// dirEnv and cgroupEnv tell the inner process where it may make things.
	dirEnv    = "STRAIT_BENCH_DIR"
	cgroupEnv = "STRAIT_BENCH_CGROUP"
)

// outer makes a cgroup and a directory, runs the inner process there in namespaces of its own, and removes
// both. What the inner makes goes with its namespaces.
func outer(ctx context.Context, o options) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("needs root, to load eBPF and make namespaces: run `sudo make bench`")
	}
	if err := o.check(); err != nil {
		return err
	}
	if _, err := exec.LookPath("nft"); err != nil {
		return errors.New("needs nft, to load kube-proxy's rules: apt-get install nftables")
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
		// In a chroot the inner's mount may have reached this namespace too. Else there is none.
		_ = unix.Unmount(pinsIn(dir), unix.MNT_DETACH)
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	r := result{Machine: thisMachine(), Metrics: map[string]summary{}}
	if !o.kubeAlone() {
		if err := runInner(ctx, cgroup, dir); err != nil {
			return err
		}
		if r, err = readResult(filepath.Join(dir, resultFile)); err != nil {
			return err
		}
	}
	var kube result
	if o.wantsKube() {
		kube = result{Machine: thisMachine(), Metrics: map[string]summary{}}
		start := time.Now()
		metrics, err := measureKube(ctx, o)
		if err != nil {
			return fmt.Errorf("kube: %w", err)
		}
		for metric, v := range metrics {
			kube.Metrics[metric] = summary(stats.Exactly(v))
		}
		kube.Took, kube.Machine.LoadAfter = time.Since(start), loadAverage()
	}
	return publish(o, r, kube)
}

func runInner(ctx context.Context, cgroup, dir string) error {
	c, err := os.Open(cgroup)
	if err != nil {
		return err
	}
	defer c.Close()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), roleEnv+"="+roleInner, cgroupEnv+"="+cgroup, dirEnv+"="+dir,
		// The runtime's signals would interrupt what is measured.
		"GODEBUG=asyncpreemptoff=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		UseCgroupFD: true, CgroupFD: int(c.Fd()),
		// Not Unshareflags, with which Go makes mounts private: that fails in a chroot.
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS,
	}
	life, err := cmd.StdinPipe() // the inner ends when this does
	if err != nil {
		return err
	}
	defer life.Close()
	return cmd.Run()
}

// pinsIn is where the bpffs is mounted.
func pinsIn(dir string) string { return filepath.Join(dir, "bpf") }

// privateMounts keeps mounts of this process from reaching other namespaces. In a chroot / is no mount, and
// cannot be told; outer cleans up then.
func privateMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("make mounts private: %w", err)
	}
	return nil
}

// exitWithParent ends this process when the one that started it is gone, however it went.
func exitWithParent(stdin io.Reader) {
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		os.Exit(1)
	}()
}

// cgroupMount finds where the whole cgroup v2 tree is mounted.
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
	return "", errors.New("needs cgroup v2: mount -t cgroup2 none DIRECTORY")
}

// removeCgroups removes a cgroup with its children, deepest first. A process that was just killed leaves its
// cgroup a moment later.
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
