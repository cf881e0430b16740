package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/internal/testutil"
)

// resolves waits until CoreDNS answers with just these.
func (m *member) resolves(name, kind string, want ...string) {
	m.t.Helper()
	slices.Sort(want)
	testutil.Eventually(m.t, within, func() error {
		got, _ := m.dig(name, kind)
		slices.Sort(got)
		return m.wrap(equal(kind+" of "+name, got, want))
	})
}

// A ClusterSetIP by CoreDNS: its address, one SRV record per port, and nothing new in the cluster's own zone.
func TestDNSOfClusterSetIP(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	local := c1.serve(service())
	c1.export("hello")
	for _, m := range []*member{c1, c2} {
		i := m.imported("hello")
		m.resolves(m.fqdn("hello"), "A", i.Spec.IPs...)
		// The suite asks at the bare name, and expects one record though there are two ports of one number.
		m.resolves(m.fqdn("hello"), "SRV", "42 "+m.fqdn("hello")+".")
		m.resolves("_udp._udp."+m.fqdn("hello"), "SRV", "42 "+m.fqdn("hello")+".")
		m.resolves("c1."+m.fqdn("hello"), "A")
	}
	c1.resolves("hello."+c1.ns+".svc.cluster.local", "A", local.Spec.ClusterIP)
	c2.resolves("hello."+c2.ns+".svc.cluster.local", "A")
	c1.unexport("hello")
	c2.resolves(c2.fqdn("hello"), "A")
}

const stateful = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: hello}
spec:
  serviceName: hello
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: serve, image: localhost/agnhost:1, args: [netexec, --http-port=42]}
`

// A headless Service with a StatefulSet: no address, and the pods' names in every cluster.
func TestHeadless(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	c1.serve(service(headless))
	_, err := c1.lab.Kubectl(t.Context(), "c1", []byte(stateful), "-n", c1.ns, "apply", "-f", "-")
	must(t, err)
	c1.export("hello")
	noIPs := func(i *mcsv1beta1.ServiceImport) error {
		return cmp.Or(equal("type", i.Spec.Type, mcsv1beta1.Headless), equal("ips", len(i.Spec.IPs), 0), equal("ipFamilies", i.Spec.IPFamilies, "[IPv4]"))
	}
	for _, m := range []*member{c1, c2} {
		m.imported("hello", from("c1"), noIPs)
	}
	pods := c1.stateful()
	all := []string{pods[0], pods[1]}
	for _, m := range []*member{c1, c2} {
		slicesOf := m.hasSlices("hello", map[string][]string{"c1": sorted(all)})
		must(t, equal("number of slices", len(slicesOf), 1))
		for _, e := range slicesOf[0].Endpoints {
			if e.Hostname == nil || !strings.HasPrefix(*e.Hostname, "hello-") || e.Conditions.Ready == nil || !*e.Conditions.Ready {
				t.Errorf("%s: endpoint %+v: want a hostname, and ready", m.name, e)
			}
		}
		m.resolves(m.fqdn("hello"), "A", all...)
		for n, ip := range pods {
			m.resolves(fmt.Sprintf("hello-%d.c1.%s", n, m.fqdn("hello")), "A", ip)
		}
		m.resolves(m.fqdn("hello"), "SRV", "42 hello-0.c1."+m.fqdn("hello")+".", "42 hello-1.c1."+m.fqdn("hello")+".")
		m.resolves("c1."+m.fqdn("hello"), "A")
		must(t, noIPs(m.imported("hello")))
	}
	// A pod of another cluster, by its name.
	if got := c2.calls(1, 1, "hello-1.c1."+c2.fqdn("hello")+":42"); fmt.Sprint(got) != "[hello-1]" {
		t.Errorf("hello-1 answers %q", got)
	}
	_, err = c1.lab.Kubectl(t.Context(), "c1", nil, "-n", c1.ns, "scale", "statefulset/hello", "--replicas=0")
	must(t, err)
	c2.resolves(c2.fqdn("hello"), "A") // no ready endpoint: no name
	c1.unexport("hello")
	c1.gone("hello")
	c2.gone("hello")
}

// stateful waits for the StatefulSet's pods and returns their addresses.
func (m *member) stateful() (out [2]string) {
	m.t.Helper()
	testutil.Eventually(m.t, 2*within, func() error {
		for n := range out {
			p, err := m.core.CoreV1().Pods(m.ns).Get(m.t.Context(), fmt.Sprintf("hello-%d", n), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if out[n] = p.Status.PodIP; out[n] == "" || p.Status.Phase != "Running" {
				return fmt.Errorf("pod %s is %s", p.Name, p.Status.Phase)
			}
		}
		return nil
	})
	return out
}

func sorted(in []string) []string { return slices.Sorted(slices.Values(in)) }
