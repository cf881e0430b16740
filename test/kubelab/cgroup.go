package kubelab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"strait.io/strait/internal/fabric"
)

// findCgroups finds where this machine mounts cgroup v2 and, if it has any, v1 controllers.
func (l *Lab) findCgroups() error {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("read mounts: %w", err)
	}
	l.cgroup2 = fabric.FindCgroup2(string(info))
	if l.cgroup2 == "" {
		return errors.New("cgroup v2 is not mounted: run `mount -t cgroup2 none DIRECTORY`")
	}
	for line := range strings.Lines(string(info)) {
		left, right, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(left); len(fields) > 4 && strings.HasPrefix(right, "cgroup ") {
			l.cgroup1 = append(l.cgroup1, fields[4])
		}
	}
	return nil
}

// cgroups returns the lab's folders in all cgroup file systems.
func (l *Lab) cgroups() []string {
	out := []string{l.cgroup()}
	for _, mount := range l.cgroup1 {
		out = append(out, filepath.Join(mount, l.Name))
	}
	return out
}

// cgroup returns the cgroup v2 of a machine, or of a process there.
func (l *Lab) cgroup(parts ...string) string {
	return filepath.Join(append([]string{l.cgroup2, l.Name}, parts...)...)
}

// CgroupOf returns a node's cgroup v2. All of the node's processes, including its pods', are in or
// below it, and no others are. On the node itself it is at NodeCgroup.
func (l *Lab) CgroupOf(node string) string { return l.cgroup(node) }

// makeNodeCgroups makes a node's cgroups, in which kubelet makes cgroups for its pods: in every v1
// hierarchy, or in v2 with the controllers that kubelet wants.
func (l *Lab) makeNodeCgroups(node string) error {
	if err := fabric.MakeCgroups(l.cgroup(node)); err != nil {
		return err
	}
	if len(l.cgroup1) == 0 {
		for _, dir := range []string{l.cgroup2, l.cgroup(), l.cgroup(node)} {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+cpuset +cpu +io +memory +pids"), 0); err != nil {
				return fmt.Errorf("enable controllers in %s: %w", dir, err)
			}
		}
	}
	for _, mount := range l.cgroup1 {
		if err := fabric.MakeCgroups(filepath.Join(mount, l.Name, node)); err != nil {
			return err
		}
		if filepath.Base(mount) != "cpuset" {
			continue
		}
		// No process can join a cpuset without processors.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			all, err := os.ReadFile(filepath.Join(mount, file))
			if err != nil {
				return fmt.Errorf("read processors: %w", err)
			}
			for _, dir := range []string{l.Name, filepath.Join(l.Name, node)} {
				if err := os.WriteFile(filepath.Join(mount, dir, file), all, 0); err != nil {
					return fmt.Errorf("assign processors to %s: %w", dir, err)
				}
			}
		}
	}
	return nil
}
