package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
)

// clientsNamespace has a pod with a shell on each node, from which all tests ask.
const clientsNamespace = "strait-t-clients"

const clientPods = `
apiVersion: v1
kind: Namespace
metadata: {name: strait-t-clients}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: client, namespace: strait-t-clients}
spec:
  selector: {matchLabels: {app: client}}
  template:
    metadata: {labels: {app: client}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: shell, image: localhost/shell:1, command: [sleep, infinity]}
`

// startClients makes these pods, once for all tests of the lab.
func (m *member) startClients() {
	m.t.Helper()
	s := sharedOf(m.t)
	s.clients.Do(func() { s.clientsErr = makeClients(m.lab) })
	must(m.t, s.clientsErr)
}

func makeClients(l *kubelab.Lab) error {
	for _, c := range l.Topology.Clusters {
		if err := l.Apply(context.Background(), c.Name, clientPods); err != nil {
			return err
		}
	}
	for _, c := range l.Topology.Clusters {
		if _, err := l.Kubectl(context.Background(), c.Name, nil, "-n", clientsNamespace, "rollout", "status", "daemonset/client", "--timeout=60s"); err != nil {
			return err
		}
	}
	return nil
}

// client returns the name of the client pod on the cluster's nth node, from 1.
func (m *member) client(n int) string {
	m.t.Helper()
	m.startClients()
	list, err := m.core.CoreV1().Pods(clientsNamespace).List(m.t.Context(), metav1.ListOptions{
		LabelSelector: "app=client", FieldSelector: fmt.Sprintf("spec.nodeName=%sn%d", m.name, n),
	})
	must(m.t, err)
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			return p.Name
		}
	}
	m.t.Fatalf("no client runs on node %d of %s", n, m.name)
	return ""
}

// inClient runs a command in the client pod on a node.
func (m *member) inClient(node int, argv ...string) (string, error) {
	m.t.Helper()
	m.startClients()
	return m.lab.In(m.t.Context(), []string{fmt.Sprintf("%sn%d", m.name, node)}, kubelab.Container{Namespace: clientsNamespace}, argv...)
}

// run runs a shell script in the client pod on a node and returns its words.
func (m *member) run(node int, script string, args ...any) ([]string, error) {
	m.t.Helper()
	out, err := m.inClient(node, "sh", "-c", fmt.Sprintf(script, args...))
	return strings.Fields(out), err
}

// client runs a shell script where a client is, and returns its words.
type client func(script string, args ...any) ([]string, error)

// calls asks n times over TCP who is there; a failed call is "-". It is patient, for it is about
// who answers: TestOps is about calls that fail.
func (c client) calls(n int, address string) ([]string, error) {
	return c("for i in $(seq %d); do curl -sS --fail --max-time 10 http://%s/hostname || printf -; echo; done", n, address)
}

// udpCalls is calls by UDP. nc knows nothing of an answer that does not come.
func (c client) udpCalls(n int, host, port string, options ...string) ([]string, error) {
	return c(`for i in $(seq %d); do a=$( (printf hostname; sleep 0.3) | /usr/bin/nc -u -w 1 -q 0 %s %s %s); echo "${a:--}"; done`,
		n, strings.Join(options, " "), host, port)
}

// calls asks from the client on a node.
func (m *member) calls(node, n int, address string) []string {
	m.t.Helper()
	out, err := m.on(node).calls(n, address)
	if err != nil {
		m.t.Fatalf("%s: call %s: %v", m.name, address, err)
	}
	return out
}

// udpCalls is calls by UDP.
func (m *member) udpCalls(node, n int, host, port string) []string {
	m.t.Helper()
	out, err := m.on(node).udpCalls(n, host, port)
	if err != nil {
		m.t.Fatalf("%s: call %s: %v", m.name, host, err)
	}
	return out
}

func (m *member) on(node int) client {
	return func(script string, args ...any) ([]string, error) { return m.run(node, script, args...) }
}

// pods runs agnhost's server in the cluster: its pods are called hello-CLUSTER-…, and answer with that.
func (m *member) pods(replicas int32) {
	m.t.Helper()
	_, err := m.lab.Kubectl(m.t.Context(), m.name, fmt.Appendf(nil, servers, m.name, replicas), "-n", m.ns, "apply", "-f", "-")
	must(m.t, err)
	m.podsReady(replicas)
}

const servers = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: hello-%[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: serve, image: localhost/agnhost:1, args: [netexec, --http-port=8080, --udp-port=8081]}
`

func (m *member) podsReady(want int32) {
	m.t.Helper()
	testutil.Eventually(m.t, 2*within, func() error {
		d, err := m.core.AppsV1().Deployments(m.ns).Get(m.t.Context(), "hello-"+m.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return m.wrap(equal("ready servers", d.Status.ReadyReplicas, want))
	})
}

// withTargets makes the Service's ports those of agnhost's server.
func withTargets(s *corev1.Service) {
	for i := range s.Spec.Ports {
		s.Spec.Ports[i].TargetPort = intstr.FromInt32(8080)
		if s.Spec.Ports[i].Protocol == corev1.ProtocolUDP {
			s.Spec.Ports[i].TargetPort = intstr.FromInt32(8081)
		}
	}
}

// answeredBy checks that exactly these clusters' pods answered.
func answeredBy(answers []string, clusters ...string) error {
	for _, a := range answers {
		if !slices.ContainsFunc(clusters, func(c string) bool { return strings.HasPrefix(a, "hello-"+c+"-") }) {
			return fmt.Errorf("answers %q: want only pods of %v", answers, clusters)
		}
	}
	for _, c := range clusters {
		if !strings.Contains(strings.Join(answers, " "), "hello-"+c+"-") {
			return fmt.Errorf("answers %q: want one of %s too", answers, c)
		}
	}
	return nil
}

// answers waits until a number of calls in a row are answered by just these clusters.
func (m *member) answers(node int, address string, clusters ...string) {
	m.t.Helper()
	testutil.Eventually(m.t, within, func() error {
		return m.wrap(answeredBy(m.calls(node, 10, address), clusters...))
	})
}

// fqdn is the name of a service in the clusterset.
func (m *member) fqdn(service string) string { return service + "." + m.ns + ".svc.clusterset.local" }

// lookup asks the cluster's DNS for a name in the test's namespace, below the clusterset's zone. It
// returns what dig prints, one string per answer, and false where the name does not exist.
func (m *member) lookup(name, kind string) (answers []string, ok bool) {
	m.t.Helper()
	return m.dig(m.fqdn(name), kind)
}

func (m *member) dig(name, kind string) (answers []string, ok bool) {
	m.t.Helper()
	out, err := m.inClient(1, "dig", "+noall", "+comments", "+answer", "+time=2", name+".", kind)
	must(m.t, err)
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 4 && f[0] != ";;" && f[3] == kind {
			if kind == "SRV" {
				f = f[2:] // priority and weight are the server's affair
			}
			answers = append(answers, strings.Join(f[4:], " "))
		}
	}
	return answers, strings.Contains(out, "status: NOERROR") && len(answers) > 0
}
