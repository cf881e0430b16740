package kubelab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"strait.io/strait/internal/fabric"
)

// process is a program that runs until it is stopped. It outlives the process that started it.
type process struct {
	// machine is where it runs: fabricName or a node. name names its log, and its cgroup below the
	// machine's.
	machine, name string
	argv          []string
	// files become descriptors 3 and up.
	files []*os.File
	// cloneflags give it additional namespaces of its own.
	cloneflags uintptr
}

// start starts a process in the machine's network namespace. The process has its own cgroup, by
// which stop finds it, and its own session, so that Ctrl-C does not reach it.
func (l *Lab) start(p process) (pid int, err error) {
	dir := l.cgroup(p.machine, p.name)
	if err := fabric.MakeCgroups(dir); err != nil {
		return 0, err
	}
	cg, err := os.Open(dir)
	if err != nil {
		return 0, fmt.Errorf("start %s: open cgroup: %w", p.name, err)
	}
	defer cg.Close()
	log, err := os.OpenFile(l.logOf(p), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, fmt.Errorf("start %s: open log: %w", p.name, err)
	}
	defer log.Close()
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, p.files
	cmd.Dir = l.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{
		UseCgroupFD: true, CgroupFD: int(cg.Fd()), Setsid: true, Cloneflags: p.cloneflags,
	}
	if err := fabric.InsideNamed(l.netns(p.machine), cmd.Start); err != nil {
		return 0, fmt.Errorf("start %s on %s: %w", p.name, p.machine, err)
	}
	// Only to reap it, if this process is still running by then.
	go func() { _ = cmd.Wait() }()
	return cmd.Process.Pid, nil
}

func (l *Lab) logOf(p process) string { return l.path("log", p.machine+"."+p.name+".log") }

// stop kills a process of the fabric at once, like a crash.
func (l *Lab) stop(ctx context.Context, name string) error {
	return fabric.KillCgroup(ctx, l.cgroup(fabricName, name))
}

// run runs a program until it ends, and returns its stdout. The error includes its stderr.
func run(ctx context.Context, stdin []byte, argv ...string) (string, error) {
	return finish(exec.CommandContext(ctx, argv[0], argv[1:]...), stdin)
}

// finish is run for a prepared command.
func finish(cmd *exec.Cmd, stdin []byte) (string, error) {
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", cmd, err, bytes.TrimSpace(said.Bytes()))
	}
	return out.String(), nil
}

// OnNode runs one of this machine's programs on a node, in all of the node's namespaces and its
// cgroup, and returns its stdout.
func (l *Lab) OnNode(ctx context.Context, node string, argv ...string) (string, error) {
	_, n, err := l.find(node)
	if err != nil {
		return "", err
	}
	pid, err := l.pid(n)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"-t", pid, "-m", "-n", "-p", "--"}, argv...)...)
	return finishIn(cmd, l.cgroup(n.Name, "init"))
}

// finishIn is finish in a cgroup.
func finishIn(cmd *exec.Cmd, cgroup string) (string, error) {
	cg, err := os.Open(cgroup)
	if err != nil {
		return "", fmt.Errorf("%s: open cgroup: %w", cmd, err)
	}
	defer cg.Close()
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cg.Fd())}
	return finish(cmd, nil)
}

// pid returns the process ID of the node's init process.
func (l *Lab) pid(n Node) (string, error) {
	b, err := os.ReadFile(l.path(n.Name, "pid"))
	if err != nil {
		return "", fmt.Errorf("node %s is not up: %w", n.Name, err)
	}
	return string(b), nil
}
