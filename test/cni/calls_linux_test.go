package cni

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
)

// within is how long what must happen may take on a busy machine.
const within = 90 * time.Second

// workload is what a cluster has: a server on each node, which answers by HTTP and UDP and sends 3
// MB on port 9000, clients in pods and on the hosts' network, and Services: one exported by this
// cluster alone, a headless one likewise, one exported by both, and global ones with pods in both
// and in the other cluster alone. %[1]s is the cluster, %[2]s the other one.
const workload = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: server}
spec:
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server, only-in: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: serve, image: localhost/agnhost:1, args: [netexec, --http-port=8080, --udp-port=8081]}
      - {name: shell, image: localhost/shell:1, command: [socat, "TCP-LISTEN:9000,fork,reuseaddr", "SYSTEM:head -c 3000000 /dev/zero"]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: host}
spec:
  selector: {matchLabels: {app: host}}
  template:
    metadata: {labels: {app: host}}
    spec:
      hostNetwork: true
      dnsPolicy: ClusterFirstWithHostNet
      terminationGracePeriodSeconds: 0
      containers: [{name: shell, image: localhost/shell:1, command: [sleep, infinity]}]
---
apiVersion: v1
kind: Service
metadata: {name: far-%[1]s}
spec:
  selector: {app: server}
  ports: [{name: http, port: 80, targetPort: 8080}, {name: udp, protocol: UDP, port: 81, targetPort: 8081}, {name: bulk, port: 90, targetPort: 9000}]
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: far-%[1]s}
---
apiVersion: v1
kind: Service
metadata: {name: headless-%[1]s}
spec:
  clusterIP: None
  selector: {app: server}
  ports: [{name: http, port: 8080}]
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: headless-%[1]s}
---
apiVersion: v1
kind: Service
metadata: {name: both}
spec: {selector: {app: server}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: both}
---
apiVersion: v1
kind: Service
metadata: {name: global, annotations: {service.cilium.io/global: "true"}}
spec: {selector: {app: server}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: global-%[1]s, annotations: {service.cilium.io/global: "true"}}
spec: {selector: {app: server, only-in: %[1]s}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: global-%[2]s, annotations: {service.cilium.io/global: "true"}}
spec: {selector: {app: server, only-in: %[2]s}, ports: [{name: http, port: 80, targetPort: 8080}]}
`

// serve makes the workload in both clusters.
func (w world) serve(t *testing.T) {
	t.Helper()
	for i, c := range w.Topology.Clusters {
		must(t, w.Apply(t.Context(), c.Name, fmt.Sprintf(workload, c.Name, w.Topology.Clusters[1-i].Name)))
	}
	for _, c := range w.Topology.Clusters {
		w.rollout(t, c.Name)
	}
}

// rollout waits until the workload runs on all nodes of a cluster.
func (w world) rollout(t *testing.T, cluster string) {
	t.Helper()
	for _, name := range []string{"server", "host"} {
		_, err := w.Kubectl(t.Context(), cluster, nil, "rollout", "status", "daemonset/"+name, "--timeout=180s")
		must(t, err)
	}
}

// place is where a client runs.
type place struct {
	name, node string
	// pod is the client's own address if it is a pod with one.
	pod string
	// run runs a shell script there. names says whether it resolves the cluster's names.
	run   func(script string) (string, error)
	names bool
}

// places are a pod on each node, and on one node each a pod on the host's network and the host.
func (w world) places(t *testing.T, cluster string) (out []place) {
	t.Helper()
	w.rollout(t, cluster)
	got, err := w.Kubectl(t.Context(), cluster, nil, "get", "pods", "--field-selector=status.phase=Running", "-o",
		`jsonpath={range .items[*]}{.metadata.labels.app} {.metadata.name} {.spec.nodeName} {.status.podIP}{"\n"}{end}`)
	must(t, err)
	for line := range strings.Lines(got) {
		f := strings.Fields(line)
		if len(f) != 4 || f[0] == "host" && !strings.HasSuffix(f[2], "n1") {
			continue
		}
		p := place{name: f[1], node: f[2], names: true, run: func(script string) (string, error) {
			return w.In(t.Context(), []string{f[2]}, kubelab.Container{Namespace: "default", Pod: f[1], Name: "shell"}, "sh", "-c", script)
		}}
		if f[0] == "server" {
			p.pod = f[3]
		}
		out = append(out, p)
	}
	node := cluster + "n2"
	return append(out, place{name: "host " + node, node: node, run: func(script string) (string, error) {
		return w.OnNode(t.Context(), node, "sh", "-c", script)
	}})
}

// hear runs a script and reports what it printed unless each of its words begins with one of these,
// and each of these begins a word.
func (p place) hear(script string, want ...string) error {
	out, err := p.run(script)
	words := strings.Fields(out)
	if err != nil || len(words) == 0 {
		return fmt.Errorf("from %s: %s: %q, want %v (%v)", p.name, script, out, want, err)
	}
	begins := func(word string) func(string) bool {
		return func(w string) bool { return strings.HasPrefix(word, w) }
	}
	for _, word := range words {
		if !slices.ContainsFunc(want, begins(word)) {
			return fmt.Errorf("from %s: %s: %q, want only %v", p.name, script, words, want)
		}
	}
	for _, w := range want {
		if !slices.ContainsFunc(words, func(word string) bool { return begins(word)(w) }) {
			return fmt.Errorf("from %s: %s: %q, want all of %v", p.name, script, words, want)
		}
	}
	return nil
}

// calls makes all calls from all places of both clusters at once, and looks at strait's status.
func (w world) calls(t *testing.T) {
	t.Run("From", func(t *testing.T) {
		for i, c := range w.Topology.Clusters {
			other := w.Topology.Clusters[1-i].Name
			a := w.answers(t, c.Name, other)
			for _, p := range w.places(t, c.Name) {
				if p.pod == "" && w.CNIs[c.Name].Name == untracked {
					continue
				}
				t.Run(p.name, func(t *testing.T) {
					t.Parallel()
					a.callsFrom(t, p)
				})
			}
		}
	})
	for _, c := range w.Topology.Clusters {
		want, nodes := "no problems", c.Nodes
		if w.CNIs[c.Name].Name == untracked {
			want, nodes = "STR4107", nodes[:1]
			w.callUnanswered(t, c)
		}
		for _, n := range nodes {
			testutil.Eventually(t, within, func() error {
				if out, err := w.inStrait(t, n, "status"); !strings.Contains(out, want) {
					return fmt.Errorf("%s: want %q: %v\n%s", n.Name, want, err, out)
				}
				return nil
			})
		}
	}
}

// inStrait runs the CLI in strait's pod on a node.
func (w world) inStrait(t *testing.T, n kubelab.Node, args ...string) (string, error) {
	t.Helper()
	return w.In(t.Context(), []string{n.Name}, kubelab.DaemonContainer, append([]string{"/strait"}, args...)...)
}

// callUnanswered calls the other cluster from a host for as long as strait looks before it reports.
func (w world) callUnanswered(t *testing.T, c kubelab.Cluster) {
	t.Helper()
	for _, other := range w.Topology.Clusters {
		if other.Name == c.Name {
			continue
		}
		script := times(12, curl+w.imported(t, c.Name, "far-"+other.Name)+"/hostname || true")
		if out, err := w.OnNode(t.Context(), c.Name+"n1", "sh", "-c", script); err != nil || strings.TrimSpace(out) != "" {
			t.Errorf("%sn1: %q (%v): the host is answered: then this row of the documentation is wrong", c.Name, out, err)
		}
	}
}

// answers are the addresses that a cluster's clients call, and who has to answer.
type answers struct {
	other                              string
	far, both, global, globalElsewhere string
	own, theirs                        map[string]server
}

func (w world) answers(t *testing.T, cluster, other string) answers {
	t.Helper()
	return answers{
		other: other, own: w.servers(t, cluster), theirs: w.servers(t, other),
		far: w.imported(t, cluster, "far-"+other), both: w.imported(t, cluster, "both"),
		global: w.clusterIP(t, cluster, "global"), globalElsewhere: w.clusterIP(t, cluster, "global-"+other),
	}
}

// times runs a command n times, each with an end of line.
func times(n int, command string) string {
	return fmt.Sprintf("for i in $(seq %d); do %s; echo; done", n, command)
}

const curl = "curl -sS --fail --max-time 4 http://"

// callsFrom makes all calls from a place.
func (a answers) callsFrom(t *testing.T, p place) {
	t.Helper()
	eventually := func(script string, want ...string) {
		t.Helper()
		testutil.Eventually(t, within, func() error { return p.hear(script, want...) })
	}
	var remote, addrs []string
	for _, s := range a.theirs {
		remote, addrs = append(remote, s.pod), append(addrs, s.ip)
	}
	all := slices.Clone(remote)
	for _, s := range a.own {
		all = append(all, s.pod)
	}
	eventually(times(16, curl+a.far+"/hostname"), remote...)
	eventually(times(2, `(printf hostname; sleep 0.2) | timeout 4 socat -t0.5 - UDP:`+a.far+":81"), "server-")
	eventually("timeout 20 socat -u TCP:"+a.far+":90 - | wc -c", "3000000")
	if p.pod != "" {
		eventually(times(4, curl+a.far+"/clientip"), p.pod+":")
	}
	eventually(times(8, curl+a.both+"/hostname"), a.own[p.node].pod) // the nearest is on the client's own node
	eventually(times(8, curl+a.globalElsewhere+"/hostname"), remote...)
	eventually(times(40, curl+a.global+"/hostname"), all...)
	if !p.names {
		return
	}
	zone := "-" + a.other + ".default.svc.clusterset.local"
	eventually(times(2, curl+"far"+zone+"/hostname"), "server-")
	eventually("dig +short headless"+zone, addrs...)
	for _, s := range a.theirs {
		eventually(curl+s.ip+":8080/hostname", s.pod)
	}
}

// server is a server's pod.
type server struct{ pod, ip string }

// servers are those of a cluster, by node.
func (w world) servers(t *testing.T, cluster string) map[string]server {
	t.Helper()
	w.rollout(t, cluster)
	got, err := w.Kubectl(t.Context(), cluster, nil, "get", "pods", "-l", "app=server", "--field-selector=status.phase=Running", "-o",
		`jsonpath={range .items[*]}{.spec.nodeName} {.metadata.name} {.status.podIP}{"\n"}{end}`)
	must(t, err)
	out := map[string]server{}
	for line := range strings.Lines(got) {
		if f := strings.Fields(line); len(f) == 3 {
			out[f[0]] = server{f[1], f[2]}
		}
	}
	if len(out) != 2 {
		t.Fatalf("%s: servers %v, want one on each of two nodes", cluster, out)
	}
	return out
}

// imported is the ClusterSetIP of an import, once it has one.
func (w world) imported(t *testing.T, cluster, name string) (ip string) {
	t.Helper()
	testutil.Eventually(t, within, func() (err error) {
		ip, err = w.Kubectl(t.Context(), cluster, nil, "get", "serviceimport", name, "-o", "jsonpath={.spec.ips[0]}")
		if err == nil && ip == "" {
			err = fmt.Errorf("%s: import %s has no address", cluster, name)
		}
		return err
	})
	return ip
}
