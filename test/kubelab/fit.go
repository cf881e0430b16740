package kubelab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// ErrUnfit reports that no lab of that size can run on this machine, whatever is built. It is no
// fault of the lab.
var ErrUnfit = errors.New("this machine cannot run Kubernetes' nodes")

// inotifyPerNode and inotifyPerCluster are how many inotify instances the programs hold, counted in
// /proc/PID/fd. A lab of two clusters with two nodes each holds 54.
const (
	inotifyPerNode    = 11
	inotifyPerCluster = 6
)

// nodePrograms are this machine's programs that a node runs, besides those in the shell image.
var nodePrograms = []string{"runc", "iptables", "conntrack", "nft", "nsenter", "/usr/lib/cni/bridge", "/usr/lib/cni/ptp"}

// Fit returns why this machine cannot run a lab of this size in addition to what it runs now; nil
// if it can. nodes is per cluster. The error is ErrUnfit and says what to do.
func Fit(clusters, nodes int) error {
	if os.Geteuid() != 0 {
		return unfit("the lab makes namespaces, cgroups and mounts: run it as root")
	}
	if err := new(Lab).findCgroups(); err != nil {
		return unfit("%w", err)
	}
	if nodes > 0 {
		for _, p := range nodePrograms {
			if _, err := exec.LookPath(p); err != nil {
				return unfit("%w: run `make kube-lab`, which installs it on Debian and Ubuntu", err)
			}
		}
	}
	return inotify(clusters * (inotifyPerCluster + nodes*inotifyPerNode))
}

// inotify checks that so many inotify instances are left. It opens that many and closes them again,
// because the kernel does not report how many are left.
func inotify(want int) error {
	for have := range want {
		fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
		if err != nil {
			return unfit("the lab needs %d inotify instances and %d are left (%w): take other labs down, or run `sysctl -w fs.inotify.max_user_instances=512`",
				want, have, err)
		}
		defer syscall.Close(fd)
	}
	return nil
}

func unfit(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUnfit, fmt.Errorf(format, args...))
}
