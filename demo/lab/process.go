package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/fabric"
)

// Command is a process to start in the lab.
type Command struct {
	Place Place
	// Cgroup is the child cgroup for a process on the node itself: "host" (the default) or
	// "straitd". Processes in pods run in the pod's cgroup.
	Cgroup string
	Argv   []string
	// Env is added to the environment.
	Env []string
	// Names gives the process the node's resolv.conf.
	Names bool
	// Stdin and Stdout can be nil. Log is the file for stderr, and for stdout if Stdout is nil.
	Stdin  io.Reader
	Stdout io.Writer
	Log    string
}

// Process is a running Command.
type Process struct {
	Pid int
	// Done is closed once the process has ended. Err is then the error of its exit, if any.
	Done chan struct{}
	Err  error
}

// Kill kills the process with SIGKILL and waits until it has ended.
func (p *Process) Kill() error {
	err := unix.Kill(p.Pid, unix.SIGKILL)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", p.Pid, err)
	}
	<-p.Done
	return nil
}

// Start runs a command in its place. The process starts in the place's network namespace and
// cgroup, because sockets keep the rules of the cgroup that they were made in. It gets its own
// session, so that Ctrl-C on the terminal reaches only the demo. It outlives the demo.
func (l *Lab) Start(c Command) (*Process, error) {
	argv := c.Argv
	if c.Names {
		argv = append(append(append([]string{}, l.enter...), l.resolvFile(c.Place.Node)), argv...)
	}
	cgroup, err := os.Open(l.placeCgroup(c.Place, c.Cgroup))
	if err != nil {
		return nil, fmt.Errorf("start %s in %s: open cgroup: %w", c.Argv[0], c.Place, err)
	}
	defer cgroup.Close()
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s in %s: open log: %w", c.Argv[0], c.Place, err)
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, log
	if c.Stdout == nil {
		cmd.Stdout = log
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cgroup.Fd()), Setsid: true}
	if err := fabric.InsideNamed(c.Place.NetNS(), cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s in %s: %w", c.Argv[0], c.Place, err)
	}
	p := &Process{Pid: cmd.Process.Pid, Done: make(chan struct{})}
	go func() {
		p.Err = cmd.Wait()
		close(p.Done)
	}()
	return p, nil
}

// placeCgroup returns the cgroup directory for a place's processes. child is as in Command.Cgroup.
func (l *Lab) placeCgroup(p Place, child string) string {
	switch {
	case p.Pod != "":
		child = "pod-" + p.Pod
	case child == "":
		child = "host"
	}
	return filepath.Join(l.Cgroup(p.Node), child)
}

// Become replaces this process by a command in a place, with the node's resolv.conf. `strait demo
// exec` uses it. It returns only on error.
func (l *Lab) Become(p Place, argv []string) error {
	procs := filepath.Join(l.placeCgroup(p, ""), "cgroup.procs")
	if err := os.WriteFile(procs, []byte("0"), 0); err != nil {
		return fmt.Errorf("enter cgroup of %s: %w", p, err)
	}
	return fabric.InsideNamed(p.NetNS(), func() error { return Enter(l.resolvFile(p.Node), argv) })
}

// adopt makes this process the parent of the lab's orphans. A tunnel process outlives the daemon
// that started it, and in a container there can be no init process to reap it.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphans: %w", err)
	}
	return nil
}

// bury reaps adopted orphans that have died. It must only be called when every Process is Done.
func bury() {
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != nil || pid <= 0 {
			return
		}
	}
}
