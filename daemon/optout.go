package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strait.io/strait/internal/problem"
)

// podDepth is how far below the configured cgroup a pod's cgroup can be: below kubelet's own
// cgroup, kubepods, the QoS class, and what a machine in a container adds.
const podDepth = 8

// optOutPods are the pods that opted out.
type optOutPods struct {
	known bool // false until the source has listed them: until then uids means nothing
	uids  []string
}

// optOuts is the part that keeps the load balancer away from pods that opted out by annotation.
type optOuts struct {
	kernel *kernel
	set    []string // the cgroups last written
	known  bool     // this daemon has written set
	wait   time.Duration
}

// optOutRetry is how long to wait before looking again for a pod's cgroup: a pod has none before
// its sandbox runs.
const optOutRetry = 2 * time.Second

func (o *optOuts) name() string         { return "optout" }
func (o *optOuts) again() time.Duration { return o.wait }

func (o *optOuts) same(a, b want) bool {
	return a.optOut.known == b.optOut.known && slices.Equal(a.optOut.uids, b.optOut.uids)
}

// put opts out the pods that want it, and opts back in those that no longer do. A pod without a
// cgroup is opted out once it has one.
func (o *optOuts) put(_ context.Context, j job) ([]problem.Problem, error) {
	o.wait = 0
	lb := o.kernel.balancer()
	if lb == nil {
		o.wait = optOutRetry
		return nil, nil
	}
	if !j.optOut.known {
		return notInForce(lb.KeepOptOut()), nil
	}
	cgroups, err := podCgroups(lb.Cgroup(), j.optOut.uids)
	if err == nil && (j.fresh || !o.known || !slices.Equal(cgroups, o.set)) {
		if err = lb.SetOptOut(cgroups); err == nil {
			o.set, o.known = cgroups, true
		}
	}
	if err != nil {
		return notInForce(err), nil
	}
	if len(cgroups) < len(j.optOut.uids) {
		o.wait = optOutRetry
	}
	return nil, nil
}

// notInForce is the Problem of an error with opt-outs.
func notInForce(err error) []problem.Problem {
	if err == nil {
		return nil
	}
	return []problem.Problem{{Code: problem.OptOutIncomplete, Object: "pods with strait.io/opt-out", Message: err.Error() + ": their connections may still be balanced",
		Try: "check that bpf.cgroup is the root of the machine's cgroup v2 tree"}}
}

// podCgroups finds the cgroups of pods below root, sorted. Pods that have none yet are left out.
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
