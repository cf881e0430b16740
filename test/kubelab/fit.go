package kubelab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// ErrUnfit is of a machine that no lab of that size can run on, whatever is built: no fault of the lab's.
var ErrUnfit = errors.New("this machine cannot run Kubernetes' nodes")

// inotifyPerNode and inotifyPerCluster are the inotify instances that programs hold, counted in /proc/PID/fd: 54 in a lab
// of two clusters with two nodes each.
const (
	inotifyPerNode    = 11
	inotifyPerCluster = 6
)

// nodePrograms are what a node runs of this machine's, beside those of the shell image.
var nodePrograms = []string{"runc", "iptables", "conntrack", "nft", "nsenter", "/usr/lib/cni/bridge", "/usr/lib/cni/ptp"}

// Fit says why this machine cannot run so many clusters of so many nodes, beside what it runs now. The error is
// ErrUnfit and says what to do.
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

// inotify takes as many instances as will be wanted, and gives them back: the kernel tells nobody how many are left.
func inotify(want int) error {
	for have := range want {
		fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
		if err != nil {
			return unfit("it takes %d inotify instances and %d are left (%w): take other labs down, or run `sysctl -w fs.inotify.max_user_instances=512`",
				want, have, err)
		}
		defer syscall.Close(fd)
	}
	return nil
}

func unfit(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUnfit, fmt.Errorf(format, args...))
}
