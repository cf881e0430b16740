// Command init is the first process of a pid namespace, and reaps orphans there.
//
// Without an argument it does nothing else: it is the pods' pause container. With the file of a
// machine.Machine it is a node's init process: it makes the node's own mounts, starts the node's
// services in order, and restarts those that end. On SIGHUP it does what the file says then.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/test/kubelab/machine"
)

func main() {
	if len(os.Args) < 2 {
		pause()
		return
	}
	fmt.Fprintf(os.Stderr, "init: %v\n", node(os.Args[1]))
	os.Exit(1)
}

// pause reaps children until SIGINT or SIGTERM.
func pause() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGCHLD)
	for s := range signals {
		if s != unix.SIGCHLD {
			return
		}
		for {
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}

// services are those that a node should run, and those of its processes that are services.
type services struct {
	wanted  []machine.Service
	running map[int]machine.Service
}

// node runs a node. It returns only on error. On SIGHUP it reads the file again, and goes on with
// the services that are in it then.
func node(file string) error {
	again, children := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(again, unix.SIGHUP)
	signal.Notify(children, unix.SIGCHLD)
	m, err := read(file)
	if err != nil {
		return err
	}
	if err := mounts(m); err != nil {
		return err
	}
	if err := os.Setenv("PATH", m.Path); err != nil {
		return fmt.Errorf("set PATH: %w", err)
	}
	s := services{[]machine.Service{m.Runtime}, map[int]machine.Service{}}
	if err := s.settle(); err != nil {
		return err
	}
	if err := awaitSocket(m.Socket); err != nil {
		return err
	}
	if err := s.toEnd(m.Load); err != nil {
		return err
	}
	for {
		s.wanted = append(m.Services, m.Runtime)
		if err := s.settle(); err != nil {
			return err
		}
		if err := s.watch(children, again); err != nil {
			return err
		}
		if m, err = read(file); err != nil {
			return err
		}
	}
}

func read(file string) (m machine.Machine, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return m, fmt.Errorf("read machine: %w", err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("decode %s: %w", file, err)
	}
	return m, nil
}

// settle ends the services that are not wanted, and starts those that are. One whose program still
// runs as another service starts when that has ended.
func (s services) settle() error {
	for pid, r := range s.running {
		if !slices.ContainsFunc(s.wanted, func(w machine.Service) bool { return reflect.DeepEqual(w, r) }) {
			if err := unix.Kill(pid, unix.SIGTERM); err != nil {
				return fmt.Errorf("end %s: %w", r.Argv[0], err)
			}
		}
	}
	for _, w := range s.wanted {
		same := func(r machine.Service) bool { return r.Argv[0] == w.Argv[0] }
		if slices.ContainsFunc(slices.Collect(maps.Values(s.running)), same) {
			continue
		}
		if err := s.start(w); err != nil {
			return err
		}
	}
	return nil
}

func (s services) start(w machine.Service) error {
	log, err := os.OpenFile(w.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", w.Argv[0], err)
	}
	defer log.Close()
	p, err := os.StartProcess(w.Argv[0], w.Argv, &os.ProcAttr{Env: append(os.Environ(), w.Env...), Files: []*os.File{nil, log, log}})
	if err != nil {
		return fmt.Errorf("start %s: %w", w.Argv[0], err)
	}
	s.running[p.Pid] = w
	return nil
}

// toEnd runs a command and waits until it ends. It returns an error if the command fails.
func (s services) toEnd(argv []string) error {
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Env: os.Environ(), Files: []*os.File{nil, os.Stdout, os.Stderr}})
	if err != nil {
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	for {
		pid, status, err := s.bury(0)
		if err != nil {
			return err
		}
		if pid == p.Pid && status != 0 {
			return fmt.Errorf("%v: status %d", argv, status.ExitStatus())
		}
		if pid == p.Pid {
			return nil
		}
	}
}

// watch buries processes until told to read the file again.
func (s services) watch(children, again <-chan os.Signal) error {
	for {
		select {
		case <-children:
		case <-again:
			return nil
		}
		for pid := 1; pid > 0; {
			var err error
			if pid, _, err = s.bury(unix.WNOHANG); err != nil {
				return err
			}
		}
	}
}

// bury waits until any process of the namespace ends, or with WNOHANG only looks, and returns its
// pid and status. It restarts a service after a second: what made it end can need a moment to pass.
func (s services) bury(options int) (int, unix.WaitStatus, error) {
	var status unix.WaitStatus
	pid, err := unix.Wait4(-1, &status, options, nil)
	if err == unix.EINTR {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("wait for any process: %w", err)
	}
	ended, ok := s.running[pid]
	if !ok {
		return pid, status, nil
	}
	delete(s.running, pid)
	fmt.Fprintf(os.Stderr, "init: %s ended (status %#x)\n", ended.Argv[0], status)
	time.Sleep(time.Second)
	return pid, status, s.settle()
}

func awaitSocket(path string) error {
	for range 600 {
		conn, err := net.Dial("unix", path)
		if err == nil {
			return conn.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("connect to %s: no process listens there after 30 s", path)
}
