package script

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"strait.io/strait/datapath/socklb/optout"
)

// attached is a load balancer that sockets of a cgroup go through: the kernel's.
type attached interface {
	Pins() string
	Cgroup() string
}

func (w *world) attached(name string) (attached, error) {
	lb, ok := w.alone[name].(attached)
	if !ok {
		return nil, fmt.Errorf("%q is no load balancer of the kernel: [kernel] guards what needs one", name)
	}
	return lb, nil
}

// cmdOptOut adds or removes one cgroup below the load balancer's.
func cmdOptOut(w *world, args []string) error {
	lb, err := w.attached(args[0])
	if err != nil {
		return err
	}
	change := map[string]func(pins, cgroup string) error{"add": optout.Add, "remove": optout.Remove}[args[1]]
	if change == nil {
		return fmt.Errorf("want add or remove, got %q", args[1])
	}
	return change(lb.Pins(), filepath.Join(lb.Cgroup(), args[2]))
}

// cmdDial says whether a new socket of a process in a cgroup, which is made, is served. No packet is sent: it is
// UDP, in a network namespace that has a loopback device alone, from where nothing but a backend there can be reached.
func cmdDial(w *world, args []string) error {
	lb, err := w.attached(args[0])
	if err != nil {
		return err
	}
	dir := filepath.Join(lb.Cgroup(), args[1])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	at, err := netip.ParseAddrPort(args[2])
	if err != nil {
		return err
	}
	cmd := exec.Command("bash", "-c", fmt.Sprintf("exec 9<>/dev/udp/%s/%d", at.Addr(), at.Port()))
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	var out []byte
	err = w.inside(func() (err error) {
		out, err = cmd.CombinedOutput()
		return err
	})
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		fmt.Fprintln(&w.out, "served")
	case errors.As(err, &exit) && strings.Contains(string(out), "Network is unreachable"):
		fmt.Fprintln(&w.out, "left alone")
	default:
		return fmt.Errorf("dial: %w: %s", err, out)
	}
	return nil
}
