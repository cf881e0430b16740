// Command init is the first process of a pid namespace, and reaps orphans there.
//
// Without an argument it does nothing else: it is the pods' pause container. With the file of a
// machine.Machine it is a node's init process: it makes the node's own mounts, starts the node's
// services in order, and restarts those that end.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
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

// node runs a node. It returns only on error.
func node(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read machine: %w", err)
	}
	var m machine.Machine
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("decode %s: %w", file, err)
	}
	if err := mounts(m); err != nil {
		return err
	}
	if err := os.Setenv("PATH", m.Path); err != nil {
		return fmt.Errorf("set PATH: %w", err)
	}
	running := map[int]machine.Service{}
	if err := start(m.Runtime, running); err != nil {
		return err
	}
	if err := awaitSocket(m.Socket); err != nil {
		return err
	}
	if err := toEnd(m.Load, running); err != nil {
		return err
	}
	for _, s := range m.Services {
		if err := start(s, running); err != nil {
			return err
		}
	}
	for {
		if _, _, err := bury(running); err != nil {
			return err
		}
	}
}

func start(s machine.Service, running map[int]machine.Service) error {
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	defer log.Close()
	p, err := os.StartProcess(s.Argv[0], s.Argv, &os.ProcAttr{Env: append(os.Environ(), s.Env...), Files: []*os.File{nil, log, log}})
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	running[p.Pid] = s
	return nil
}

// toEnd runs a command and waits until it ends. It returns an error if the command fails.
func toEnd(argv []string, running map[int]machine.Service) error {
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Env: os.Environ(), Files: []*os.File{nil, os.Stdout, os.Stderr}})
	if err != nil {
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	for {
		pid, status, err := bury(running)
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

// bury waits until any process of the namespace ends, and returns its pid and status. It restarts a
// service after a second: what made it end can need a moment to pass.
func bury(running map[int]machine.Service) (int, unix.WaitStatus, error) {
	var status unix.WaitStatus
	pid, err := unix.Wait4(-1, &status, 0, nil)
	if err == unix.EINTR {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("wait for any process: %w", err)
	}
	s, ok := running[pid]
	if !ok {
		return pid, status, nil
	}
	delete(running, pid)
	fmt.Fprintf(os.Stderr, "init: %s ended (status %#x); restarting it\n", s.Argv[0], status)
	time.Sleep(time.Second)
	return pid, status, start(s, running)
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
