package faults

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/testutil"
)

// pods are the pods of a Service on one node, by state.
type pods struct{ ready, unready, leaving []netip.AddrPort }

var (
	podA, podB = netip.MustParseAddrPort("10.9.9.1:5353"), netip.MustParseAddrPort("10.9.9.2:5353")
	a, b       = []netip.AddrPort{podA}, []netip.AddrPort{podB}
	ab         = []netip.AddrPort{podA, podB}
)

// echo writes the Service echo, of one UDP port, with pods of this machine.
func (m *machine) echo(t *testing.T, p pods) {
	t.Helper()
	var all []string
	add := func(pods []netip.AddrPort, conditions string) {
		for _, at := range pods {
			all = append(all, fmt.Sprintf("{addresses: [%s], nodeName: %s, conditions: {%s}}", at.Addr(), m.config["node"], conditions))
		}
	}
	add(p.ready, "ready: true, serving: true")
	add(p.unready, "ready: false, serving: false")
	add(p.leaving, "ready: false, serving: true, terminating: true")
	text := service("echo")
	for _, r := range [][2]string{
		{"{name: http, port: 80, targetPort: 8080}", "{name: echo, port: 53, protocol: UDP, targetPort: 5353}"},
		{"{name: http, port: 8080}", "{name: echo, port: 5353, protocol: UDP}"},
		{"{addresses: [10.9.9.9], nodeName: n1}", strings.Join(all, ", ")},
	} {
		text = strings.ReplaceAll(text, r[0], r[1])
	}
	m.write(t, "manifests/echo.yaml", text)
}

// leadsTo waits until the Service leads to exactly these pods, and returns its address.
func (m *machine) leadsTo(t *testing.T, want []netip.AddrPort) (vip netip.AddrPort) {
	t.Helper()
	testutil.Eventually(t, patience, func() error {
		fs, err := inspect.Read(m.pins())
		i := slices.IndexFunc(fs, func(f datapath.Frontend) bool { return f.Addr.Port == 53 })
		if err != nil || i < 0 {
			return fmt.Errorf("no frontend: %v %w", fs, err)
		}
		var have []netip.AddrPort
		for _, b := range fs[i].Backends {
			have = append(have, b.AddrPort())
		}
		if !slices.Equal(have, want) {
			return fmt.Errorf("the kernel holds %v, want %v", have, want)
		}
		vip = netip.AddrPortFrom(fs[i].Addr.IP, 53)
		return nil
	})
	return vip
}

// clients are connected UDP sockets: one to each pod, and one to the first pod without strait.
type clients struct{ a, b, direct socket }

// clients connects once the Service leads to both pods.
func (m *machine) clients(t *testing.T) clients {
	t.Helper()
	p := m.newPod(t, podA, podB)
	vip := m.leadsTo(t, ab)
	return clients{p.openTo(vip, podA), p.openTo(vip, podB), p.open(podA)}
}

// rest checks that strait has left the sockets alone that are right whatever becomes of pod A.
func (c clients) rest(t *testing.T) {
	t.Helper()
	answers(t, "the socket of a pod that stays", c.b, podB)
	answers(t, "the socket that never went through strait", c.direct, podA)
}

func answers(t *testing.T, what string, s socket, want netip.AddrPort) {
	t.Helper()
	if got := s.ask(); got != want.String() {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// A pod leaves while the daemon is down: the next life closes its connected UDP sockets, and no
// other.
func TestBackendLeavesWithoutDaemon(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.echo(t, pods{ready: ab})
	life := m.start(t)
	c := m.clients(t)
	life.kill(t)
	m.echo(t, pods{ready: b})
	answers(t, "without a daemon", c.a, podA)
	m.start(t)
	testutil.Eventually(t, patience, c.a.isClosed)
	c.rest(t)
}

// elsewhere is a machine of another cluster, and of the same clusterset.
func (m *machine) elsewhere(t *testing.T) *machine {
	t.Helper()
	far := m.another(t, "n2", 2)
	far.config["gossip"].(tree)["keyFile"] = m.path("gossip.key")
	m.config["gossip"].(tree)["seeds"] = []string{"127.0.0.2:7946"} // so that a new life finds it at once
	return far
}

// A pod of another cluster joins just before a crash, too late to be saved: the next life does not
// close its sockets before it has heard of the pod again.
func TestBackendJoinsBeforeCrash(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	far := m.elsewhere(t)
	far.echo(t, pods{ready: a})
	life := m.start(t)
	far.start(t)
	m.leadsTo(t, a)
	life.stop(t)
	saved, err := os.ReadFile(m.path("state/replica.cbor"))
	must(t, err)

	life = m.start(t)
	far.echo(t, pods{ready: ab})
	c := m.clients(t)
	life.kill(t)
	m.write(t, "state/replica.cbor", string(saved))
	far.echo(t, pods{ready: b})
	m.start(t)
	testutil.Eventually(t, patience, c.a.isClosed)
	c.rest(t)
}
