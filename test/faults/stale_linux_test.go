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

// echo is a Service of one UDP port, whose backends are pods of this node.
type echo struct {
	*machine
	ready []netip.AddrPort
}

var podA, podB = netip.MustParseAddrPort("10.9.9.1:5353"), netip.MustParseAddrPort("10.9.9.2:5353")

// put writes the Service with these pods, and waits for nothing.
func (e *echo) put(t *testing.T, ready, unready []netip.AddrPort) {
	t.Helper()
	e.ready = ready
	e.writePods(t, ready, unready)
}

// writePods writes the Service with pods of the machine.
func (m *machine) writePods(t *testing.T, ready, unready []netip.AddrPort) {
	t.Helper()
	text := service("echo")
	text = strings.ReplaceAll(text, "{name: http, port: 80, targetPort: 8080}", "{name: echo, port: 53, protocol: UDP, targetPort: 5353}")
	text = strings.ReplaceAll(text, "{name: http, port: 8080}", "{name: echo, port: 5353, protocol: UDP}")
	var pods []string
	add := func(at netip.AddrPort, ready bool) {
		pods = append(pods, fmt.Sprintf("{addresses: [%s], nodeName: %s, conditions: {ready: %v, serving: %[3]v}}", at.Addr(), m.config["node"], ready))
	}
	for _, at := range ready {
		add(at, true)
	}
	for _, at := range unready {
		add(at, false)
	}
	text = strings.ReplaceAll(text, "{addresses: [10.9.9.9], nodeName: n1}", strings.Join(pods, ", "))
	m.write(t, "manifests/echo.yaml", text)
}

// set is put, and waits until the kernel holds the ready pods.
func (e *echo) set(t *testing.T, ready, unready []netip.AddrPort) {
	t.Helper()
	e.put(t, ready, unready)
	testutil.Eventually(t, patience, func() error {
		_, err := e.frontend()
		return err
	})
}

// frontend returns the Service's address once the kernel holds exactly its ready pods.
func (e *echo) frontend() (netip.AddrPort, error) {
	fs, err := inspect.Read(e.pins())
	i := slices.IndexFunc(fs, func(f datapath.Frontend) bool { return f.Addr.Port == 53 })
	if err != nil || i < 0 {
		return netip.AddrPort{}, fmt.Errorf("no frontend: %v %w", fs, err)
	}
	var have []netip.AddrPort
	for _, b := range fs[i].Backends {
		have = append(have, b.AddrPort())
	}
	if !slices.Equal(have, e.ready) {
		return netip.AddrPort{}, fmt.Errorf("the kernel holds %v, want %v", have, e.ready)
	}
	return netip.AddrPortFrom(fs[i].Addr.IP, 53), nil
}

// newEcho makes the Service with two pods. Nothing runs yet.
func newEcho(t *testing.T) *echo {
	t.Helper()
	e := &echo{machine: newMachine(t)}
	e.put(t, []netip.AddrPort{podA, podB}, nil)
	return e
}

// clients are connected UDP sockets: to each backend, and to the first one without strait.
type clients struct{ a, b, direct socket }

// clients waits for the frontend and connects.
func (e *echo) clients(t *testing.T) clients {
	t.Helper()
	p := e.newPod(t, podA, podB)
	var vip netip.AddrPort
	testutil.Eventually(t, patience, func() (err error) {
		vip, err = e.frontend()
		return err
	})
	return clients{p.openTo(vip, podA), p.openTo(vip, podB), p.open(podA)}
}

// others checks that strait has left the sockets alone that are right.
func (c clients) others(t *testing.T) {
	t.Helper()
	if got := c.b.ask(); got != podB.String() {
		t.Errorf("the socket of a pod that stays: %s", got)
	}
	if got := c.direct.ask(); got != podA.String() {
		t.Errorf("the socket that never went through strait: %s", got)
	}
}

// A pod leaves while the daemon is down: the next life closes its connected UDP sockets, and no
// other.
func TestBackendLeavesWithoutDaemon(t *testing.T) {
	e := newEcho(t)
	life := e.start(t)
	c := e.clients(t)
	life.kill(t)
	e.put(t, []netip.AddrPort{podB}, nil)
	if got := c.a.ask(); got != podA.String() {
		t.Fatalf("without a daemon: %s", got)
	}
	e.start(t)
	testutil.Eventually(t, patience, c.a.isClosed)
	c.others(t)
}

// A pod of another cluster joins just before a crash, too late to be saved: the next life does not
// close its sockets before it has heard of the pod again.
func TestBackendJoinsBeforeCrash(t *testing.T) {
	e := &echo{machine: newMachine(t), ready: []netip.AddrPort{podA}}
	far := e.another(t, "n2", 2)
	far.config["gossip"].(tree)["keyFile"] = e.path("gossip.key")
	far.writePods(t, e.ready, nil)
	life := e.start(t)
	far.start(t)
	testutil.Eventually(t, patience, func() error {
		_, err := e.frontend()
		return err
	})
	life.stop(t)
	saved, err := os.ReadFile(e.path("state/replica.cbor"))
	must(t, err)

	life = e.start(t)
	e.ready = []netip.AddrPort{podA, podB}
	far.writePods(t, e.ready, nil)
	c := e.clients(t)
	life.kill(t)
	e.write(t, "state/replica.cbor", string(saved))
	far.writePods(t, []netip.AddrPort{podB}, nil)
	e.start(t)
	testutil.Eventually(t, patience, c.a.isClosed)
	c.others(t)
}
