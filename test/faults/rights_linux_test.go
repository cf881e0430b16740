package faults

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"strait.io/strait/datapath"
	"strait.io/strait/install/chart"
	"strait.io/strait/internal/testutil"
)

// chartPod is what the chart lets the daemon do.
func chartPod(t *testing.T, destroySockets bool) (capabilities []string, hostPID bool) {
	t.Helper()
	pod := chartDaemon(t, destroySockets)
	for _, c := range pod.Containers[0].SecurityContext.Capabilities.Add {
		capabilities = append(capabilities, string(c))
	}
	return capabilities, pod.HostPID
}

// chartDaemon is the daemon's pod.
func chartDaemon(t *testing.T, destroySockets bool) corev1.PodSpec {
	t.Helper()
	docs, err := chart.Render(chart.Options{Values: chart.Values{"bpf": map[string]any{"destroySockets": destroySockets}}})
	must(t, err)
	for _, d := range docs {
		var set appsv1.DaemonSet
		if yaml.Unmarshal(d, &set) != nil || set.Kind != "DaemonSet" || set.Name != "strait" {
			continue
		}
		return set.Spec.Template.Spec
	}
	t.Fatal("the chart has no DaemonSet strait")
	return corev1.PodSpec{}
}

// confine makes straitd run with only these capabilities, and where it does not see the machine's
// processes, in a PID namespace of its own, as in a container.
func (m *machine) confine(t *testing.T, capabilities []string, hostPID bool) {
	t.Helper()
	if _, err := exec.LookPath("setpriv"); err != nil {
		testutil.Missing(t, "no setpriv(1): install util-linux")
	}
	set := "-all"
	for _, c := range capabilities {
		set += ",+" + strings.ToLower(c)
	}
	m.wrap = []string{"setpriv", "--no-new-privs", "--bounding-set=" + set, "--"}
	if !hostPID {
		m.wrap = append([]string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"}, m.wrap...)
	}
}

// TestLeastRights: what the chart lets the daemon do suffices for frontends, tunnels and routes, and
// with destroySockets for closing the sockets of pods too.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	for _, destroy := range []bool{true, false} {
		t.Run(fmt.Sprintf("destroySockets=%v", destroy), func(t *testing.T) {
			m := newMachine(t)
			capabilities, hostPID := chartPod(t, destroy)
			if sees := slices.Contains(capabilities, "SYS_ADMIN") || slices.Contains(capabilities, "SYS_PTRACE") || hostPID; sees != destroy {
				t.Errorf("capabilities %v, hostPID %v", capabilities, hostPID)
			}
			m.confine(t, capabilities, hostPID)
			m.config["bpf"].(tree)["destroySockets"] = destroy
			m.echo(t, pods{ready: ab})
			life := m.start(t)
			c := m.clients(t)
			m.echo(t, pods{ready: b})
			if destroy {
				testutil.Eventually(t, patience, c.a.isClosed)
			} else {
				m.leadsTo(t, b)
				answers(t, "the socket of a pod that left", c.a, podA)
			}
			c.rest(t)
			life.untroubled(t)
			s, err := life.status()
			must(t, err)
			if tried := slices.ContainsFunc(s.Datapath.Features, func(f datapath.Feature) bool { return strings.Contains(f.Name, "destroy") }); tried != destroy {
				t.Errorf("tried to destroy sockets: %v", tried)
			}
		})
	}
}

// TestLeastRightsTunnel is TestLeastRights for tunnels and routes.
func TestLeastRightsTunnel(t *testing.T) {
	t.Parallel()
	m := bridged(t, 1)[0]
	capabilities, hostPID := chartPod(t, false)
	m.confine(t, capabilities, hostPID)
	m.config["bpf"].(tree)["destroySockets"] = false
	life := m.start(t)
	life.answers(t)
	life.untroubled(t)
}

// TestLeastRightsView: what the chart lets the daemon do suffices to give a socket to the group of
// strait-view.
func TestLeastRightsView(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	capabilities, hostPID := chartPod(t, true)
	m.confine(t, capabilities, hostPID)
	group := chartDaemon(t, true).SecurityContext.SupplementalGroups[0]
	m.wrap = slices.Insert(m.wrap, slices.Index(m.wrap, "--no-new-privs"), fmt.Sprintf("--groups=%d", group))
	m.config["viewGroup"] = group
	life := m.start(t)
	testutil.Eventually(t, patience, func() error {
		info, err := os.Stat(m.path("run/view/strait.sock"))
		if err != nil {
			return err
		}
		if owner := info.Sys().(*syscall.Stat_t); int64(owner.Gid) != group || info.Mode().Perm() != 0o660 {
			t.Fatalf("the socket has mode %s and group %d, want %d", info.Mode(), owner.Gid, group)
		}
		return nil
	})
	life.untroubled(t)
}

// TestEachRightIsNeeded: without any one of the rights that stay, the daemon cannot work, and says
// which it misses.
func TestEachRightIsNeeded(t *testing.T) {
	t.Parallel()
	capabilities, hostPID := chartPod(t, false)
	for without, says := range map[string]string{
		"BPF":       "with the capabilities BPF, NET_ADMIN",
		"NET_ADMIN": "operation not permitted",
		"PERFMON":   "with the capabilities BPF, NET_ADMIN, PERFMON",
	} {
		i := slices.Index(capabilities, without)
		if i < 0 {
			t.Errorf("the chart does not give %s", without)
			continue
		}
		m := newMachine(t)
		m.confine(t, slices.Delete(slices.Clone(capabilities), i, i+1), hostPID)
		m.config["bpf"].(tree)["destroySockets"] = false
		m.start(t).says(t, says)
	}
}

// untroubled waits until the daemon has applied a plan, and checks that it reports no Problem.
func (p *process) untroubled(t *testing.T) {
	t.Helper()
	testutil.Eventually(t, patience, func() error {
		s, err := p.status()
		if err == nil && (!s.Datapath.Attached || len(s.Problems) > 0) {
			err = fmt.Errorf("attached: %v, problems: %v", s.Datapath.Attached, s.Problems)
		}
		return err
	})
}
