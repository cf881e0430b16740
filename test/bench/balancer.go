package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// order is what a balancer process does for as long as it lives.
type order struct {
	Config socklb.Config
	// Wants are desired states that it applies in turn.
	Wants [][]datapath.Frontend
	// TooBig is a frontend in each of Wants for which the maps have no room; "" if there is none.
	TooBig string
}

// inForce is what a balancer prints once its first desired state is in force.
const inForce = "in force"

// balance is the balancer process. It uses socklb as the daemon does, until it is killed.
func balance(stdin io.Reader, stdout io.Writer) error {
	in := bufio.NewReader(stdin)
	text, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read order: %w", err)
	}
	exitWithParent(in)
	var o order
	if err := json.Unmarshal(text, &o); err != nil {
		return fmt.Errorf("read order: %w", err)
	}
	lb, err := socklb.Open(o.Config)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		if err := o.expected(problem.Strict(lb.Reconcile(o.Wants[n%len(o.Wants)], true))); err != nil {
			return err
		}
		if n == 0 {
			fmt.Fprintln(stdout, inForce)
		}
		time.Sleep(time.Millisecond)
	}
}

// expected returns nil if err is only that of the frontend TooBig, and err otherwise. It returns an
// error if TooBig is set and err is nil.
func (o order) expected(err error) error {
	switch {
	case o.TooBig == "":
		return err
	case err == nil:
		return fmt.Errorf("frontend %s fits, so the map is not full", o.TooBig)
	case strings.Count(err.Error(), "frontend ") == 1 && strings.Contains(err.Error(), o.TooBig):
		return nil
	}
	return err
}

// tooBig returns a frontend with so many backends that it does not fit.
func tooBig(backends int) datapath.Frontend {
	f := datapath.Frontend{Addr: l4.New(netip.MustParseAddr("10.98.0.1"), servicePort, l4.TCP)}
	for ip := nth(podRange.Addr(), 1<<20); len(f.Backends) < backends; ip = ip.Next() {
		f.Backends = append(f.Backends, datapath.Backend{IP: ip, Port: podPort, Weight: 1})
	}
	return f
}

// process is a balancer process, in its parent.
type process struct {
	cmd   *exec.Cmd
	life  io.Closer // its stdin: the process exits when this is closed
	lines chan string
}

func startBalancer(o order) (*process, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleEnv+"="+roleBalancer)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, life: in, lines: make(chan string, 1)}
	go func() { // ends when the process closes its end of the pipe
		line, _ := bufio.NewReader(out).ReadString('\n')
		p.lines <- strings.TrimSpace(line)
	}()
	_, err = in.Write(append(text, '\n'))
	return p, err
}

// wait waits until the first desired state is in force.
func (p *process) wait() error {
	select {
	case line := <-p.lines:
		if line != inForce {
			return fmt.Errorf("the balancer ended early, after %q", line)
		}
		return nil
	case <-time.After(20 * time.Second):
		return fmt.Errorf("the balancer was not ready within 20 s")
	}
}

// kill kills the process with SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(unix.SIGKILL) // fails if it has already ended
	_ = p.cmd.Wait()                       // returns that it was killed
	_ = p.life.Close()
}
