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

// Command is a process to start somewhere in the lab.
type Command struct {
	Place Place
	// Cgroup is the child cgroup of a process on a node itself: "host" (the default) or "straitd".
	// Processes in pods are in the pod's.
	Cgroup string
	Argv   []string
	// Env is added to the environment.
	Env []string
	// Names gives the process the node's resolv.conf.
	Names bool
	// Stdin and Stdout may be nil. Log is the file that gets what else is written.
	Stdin  io.Reader
	Stdout io.Writer
	Log    string
}

// Process is a running Command.
type Process struct {
	Pid int
	// Done is closed once the process has ended; Err then says how.
	Done chan struct{}
	Err  error
}

// Kill ends the process with SIGKILL and waits for its end.
func (p *Process) Kill() error {
	err := unix.Kill(p.Pid, unix.SIGKILL)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", p.Pid, err)
	}
	<-p.Done
	return nil
}

// Start runs a command in its place. It is born in the network namespace and cgroup of the place, since
// sockets keep the rules of the cgroup that they were made in; in a session of its own, so that a
// Ctrl-C on the terminal reaches the demo alone; and it outlives the demo.
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

// placeCgroup is the directory of the cgroup of a place's processes.
func (l *Lab) placeCgroup(p Place, child string) string {
	switch {
	case p.Pod != "":
		child = "pod-" + p.Pod
	case child == "":
		child = "host"
	}
	return filepath.Join(l.Cgroup(p.Node), child)
}

// Become turns this process into a command in a place, with the node's names: what `exec` does. It
// returns only on error.
func (l *Lab) Become(p Place, argv []string) error {
	procs := filepath.Join(l.placeCgroup(p, ""), "cgroup.procs")
	if err := os.WriteFile(procs, []byte("0"), 0); err != nil {
		return fmt.Errorf("enter cgroup of %s: %w", p, err)
	}
	return fabric.InsideNamed(p.NetNS(), func() error { return Enter(l.resolvFile(p.Node), argv) })
}

// adopt makes this process the parent of the lab's orphans: a tunnel outlives the daemon that started
// it, and nobody else may be there to bury it.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphans: %w", err)
	}
	return nil
}

// bury reaps orphans that were adopted and are dead. Only for when every Process is Done.
func bury() {
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != nil || pid <= 0 {
			return
		}
	}
}
