package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/datapath/socklb"
)

// podDepth is how far below the configured cgroup a pod's may be: kubelet's own cgroup, kubepods, the class of
// service, and what a machine in a container adds.
const podDepth = 8

// optOuts keeps the pods that are to be left alone, by annotation, out of the load balancer.
type optOuts struct {
	uids  []string // as asked for last
	set   []string // the cgroups in force
	known bool     // some are in force, by this daemon or an earlier one
	next  time.Time
}

// optOutRetry is how long a pod whose cgroup is not there is not looked for: it has none before its sandbox runs.
const optOutRetry = 2 * time.Second

// apply makes the pods with these UIDs opt out, those without cgroup when they have one. It reports whether it
// should be called again soon.
func (o *optOuts) apply(lb *socklb.LB, uids []string, now time.Time) ([]clustermesh.Problem, bool) {
	if o.known && slices.Equal(uids, o.uids) && (len(o.set) >= len(uids) || now.Before(o.next)) {
		return nil, len(o.set) < len(uids)
	}
	o.uids, o.next = uids, now.Add(optOutRetry)
	cgroups, err := podCgroups(lb.Cgroup(), uids)
	if err == nil && (!o.known || !slices.Equal(cgroups, o.set)) {
		if err = lb.SetOptOut(cgroups); err == nil {
			o.set, o.known = cgroups, true
		}
	}
	if err != nil {
		return []clustermesh.Problem{{Object: "pods with strait.io/opt-out", Message: err.Error() + ": their connections may still be balanced",
			Try: "check that bpf.cgroup is the root of the machine's cgroup v2 tree"}}, true
	}
	return nil, len(cgroups) < len(uids)
}

// podCgroups finds the cgroups of pods below root, sorted; a pod that has none yet is missing.
func podCgroups(root string, uids []string) (out []string, err error) {
	if len(uids) == 0 {
		return nil, nil
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // gone while we looked
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		}
		if slices.ContainsFunc(uids, func(uid string) bool { return isPodCgroup(d.Name(), uid) }) {
			out = append(out, path)
			return fs.SkipDir
		}
		if rel, err := filepath.Rel(root, path); err == nil && strings.Count(rel, "/")+1 >= podDepth {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find cgroups of pods: %w", err)
	}
	slices.Sort(out)
	return out, nil
}

// isPodCgroup recognises kubelet's names: "pod<uid>" of its cgroupfs driver, and
// "kubepods-burstable-pod<uid with underscores>.slice" of the systemd driver.
func isPodCgroup(name, uid string) bool {
	if name == "pod"+uid {
		return true
	}
	return strings.HasSuffix(name, "-pod"+strings.ReplaceAll(uid, "-", "_")+".slice")
}
