package kube

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/internal/testutil"
)

// Clients that no socket hook sees are served by kube-proxy, from the derived Service's slices, and by CoreDNS, from
// the import's: whatever holds for other clients holds for them, and follows when the endpoints change.
func TestTrafficOutsideTheHooks(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	for _, m := range []*member{c1, c2} {
		m.serve(service(withTargets))
		m.serve(service(withTargets, affine(60), named("sticky")))
		m.serve(service(withTargets, headless, named("heads")))
	}
	c1.pods(2)
	c2.pods(1)
	c1.exportAll()
	inC1 := c1.outsiders()
	everywhere := slices.Concat(inC1, c2.outsiders())
	t.Run("unseen", func(t *testing.T) {
		for _, o := range everywhere {
			testutil.Eventually(t, within, o.isUnseen)
		}
	})
	balanced := func(w way) bool { return !w.headless } // a headless service's name lists the pods of all clusters
	reach(t, "one-cluster", everywhere, func(way) bool { return true }, "c1")
	c2.exportAll()
	for _, name := range []string{"hello", "sticky"} {
		c1.imported(name, from("c1", "c2"))
	}
	reach(t, "own-first", inC1, balanced, "c1")
	c1.scale(0)
	reach(t, "fails-over", inC1, func(way) bool { return true }, "c2")
	c1.scale(2)
	reach(t, "and-back", inC1, balanced, "c1")
}

// reach demands that each of the clients reaches just these clusters, in all ways that are kept.
func reach(t *testing.T, name string, clients []outsider, keep func(way) bool, clusters ...string) {
	t.Run(name, func(t *testing.T) {
		for _, o := range clients {
			t.Run(o.name, func(t *testing.T) {
				t.Parallel()
				for _, w := range o.ways {
					if keep(w) {
						t.Run(w.name, func(t *testing.T) { o.reaches(t, w, clusters...) })
					}
				}
			})
		}
	})
}

func (m *member) exportAll() {
	m.t.Helper()
	for _, name := range []string{"hello", "sticky", "heads"} {
		m.export(name)
	}
}

// way is one of calling a service.
type way struct {
	name string
	call func(client) ([]string, error)
	// pods is how many of c1's two answer; 0 says nothing of it.
	pods     int
	headless bool
}

// ways are those that people have, from this cluster.
func (m *member) ways() []way {
	m.t.Helper()
	tcp := func(address string) func(client) ([]string, error) {
		return func(c client) ([]string, error) { return c.calls(8, address) }
	}
	udp := func(host, port string, options ...string) func(client) ([]string, error) {
		return func(c client) ([]string, error) { return c.udpCalls(8, host, port, options...) }
	}
	hello, sticky := m.imported("hello").Spec.IPs[0], m.imported("sticky").Spec.IPs[0]
	return []way{
		{name: "tcp", call: tcp(hello + ":42"), pods: 2},
		{name: "tcp-by-name", call: tcp(m.fqdn("hello") + ":42"), pods: 2},
		{name: "udp", call: udp(hello, "42"), pods: 2},
		{name: "udp-by-name", call: udp(m.fqdn("hello"), "42"), pods: 2},
		// All of one flow, to the kernel: what it remembers of it must not outlive the pod.
		{name: "udp-from-one-port", call: udp(hello, "42", "-p", "4242")},
		{name: "tcp-affine", call: tcp(sticky + ":42"), pods: 1},
		{name: "udp-affine", call: udp(sticky, "42"), pods: 1},
		{name: "tcp-headless", call: tcp(m.fqdn("heads") + ":8080"), headless: true},
		{name: "udp-headless", call: udp(m.fqdn("heads"), "8081"), headless: true},
	}
}

// outsider is a client that no socket hook sees, as is a pod whose sandbox has a network stack of its own: the test's
// own process, which enters the network of a pod or of its node, with that pod's files, its resolver's among them, and
// stays in its own cgroup.
type outsider struct {
	name   string
	client client
	vip    string
	ways   []way
}

// outsiders are a pod and a node of the cluster: kube-proxy has rules of its own for each.
func (m *member) outsiders() (out []outsider) {
	m.t.Helper()
	pid, node := m.clientProcess(), "--net=/run/netns/"+m.lab.Name+"-"+m.nodes()[0]
	for _, at := range [][2]string{{"pod", "--net"}, {"node", node}} {
		enter := func(script string, args ...any) ([]string, error) {
			out, err := exec.CommandContext(m.t.Context(), "nsenter", "--target", pid, "--mount", "--pid", at[1], "--",
				"/bin/sh", "-c", fmt.Sprintf(script, args...)).Output()
			return strings.Fields(string(out)), err
		}
		out = append(out, outsider{m.name + "-" + at[0], enter, m.imported("hello").Spec.IPs[0] + ":42", m.ways()})
	}
	return out
}

// clientProcess is the number of the process of the client pod on the first node.
func (m *member) clientProcess() string {
	m.t.Helper()
	pod, err := m.core.CoreV1().Pods(clientsNamespace).Get(m.t.Context(), m.client(1), metav1.GetOptions{})
	must(m.t, err)
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	lists, err := filepath.Glob(m.lab.CgroupOf(m.nodes()[0]) + "/kubepods/*/*/" + id + "/cgroup.procs")
	must(m.t, err)
	for _, list := range lists {
		pids, err := os.ReadFile(list)
		must(m.t, err)
		for pid := range strings.FieldsSeq(string(pids)) {
			// Other tests run programs there that come and go.
			if command, _ := os.ReadFile("/proc/" + pid + "/cmdline"); string(command) == "sleep\x00infinity\x00" {
				return pid
			}
		}
	}
	m.t.Fatalf("%s: container %s has no process in %q", m.name, id, lists)
	return ""
}

// isUnseen checks that the client's socket is connected to the address that it dialled: a hook would have changed it.
func (o outsider) isUnseen() error {
	words, err := o.client(connections, strings.Replace(o.vip, ":", " ", 1))
	if err == nil && !slices.Contains(words, o.vip) {
		err = fmt.Errorf("connections %q, want one to %s", words, o.vip)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.name, err)
	}
	return nil
}

// reaches waits until just these clusters answer, and demands of an affine service that one pod did.
func (o outsider) reaches(t *testing.T, w way, clusters ...string) {
	t.Helper()
	var pods []string
	testutil.Eventually(t, within, func() error {
		answers, err := w.call(o.client)
		if err != nil {
			return err
		}
		pods = slices.Compact(slices.Sorted(slices.Values(answers)))
		if err := answeredBy(answers, clusters...); err != nil {
			return err
		}
		if clusters[0] == "c1" && len(pods) < w.pods {
			return fmt.Errorf("answers of %q, want %d pods", pods, w.pods)
		}
		return nil
	})
	if w.pods == 1 && len(pods) != 1 {
		t.Errorf("answers of %q, want one pod", pods)
	}
}
