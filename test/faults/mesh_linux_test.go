package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/clustermesh/gossip/statelog"
	"strait.io/strait/internal/testutil"
)

// devices counts the tunnels' devices: the names of their sockets are the whole machine's.
var devices atomic.Int32

// bridged makes machines in namespaces of their own, on one bridge, each the only node of its
// cluster, with tunnels.
func bridged(t *testing.T, n int) (out []*machine) {
	t.Helper()
	testutil.NeedTun(t)
	testutil.NetNS(t) // the bridge's
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
	must(t, netlink.LinkAdd(bridge))
	must(t, netlink.LinkSetUp(bridge))
	for i := 1; i <= n; i++ {
		m := &machine{dir: t.TempDir(), ns: plugged(t, i, bridge.Attrs().Index), number: 1}
		m.setUp(t, "n1", testutil.BPFFS(t))
		m.number = i
		m.write(t, "manifests/serve.yaml", strings.ReplaceAll(service("serve"), "10.9.9.9", fmt.Sprintf("10.9.%d.9", i)))
		m.write(t, "manifests/node.yaml", node("n1", m.addr()))
		m.config["cluster"] = fmt.Sprintf("c%d", i)
		m.config["nodePrefixes"] = []string{fmt.Sprintf("10.9.%d.0/24", i)}
		m.config["mesh"] = tree{"mode": "wireguard", "device": fmt.Sprintf("stf%d-%d", os.Getpid()%1_000_000, devices.Add(1))}
		gossip := m.config["gossip"].(tree)
		gossip["bind"] = m.addr() + ":7946"
		if i > 1 {
			gossip["keyFile"], gossip["seeds"] = out[0].path("gossip.key"), []string{out[0].addr() + ":7946"}
		}
		t.Cleanup(func() { m.cleanUp(t) })
		out = append(out, m)
	}
	return out
}

func (m *machine) addr() string { return fmt.Sprintf("172.31.9.%d", m.number) }

// aside makes a namespace and does not stay in it.
func aside(t *testing.T) *testutil.Namespace {
	t.Helper()
	home, err := os.Open("/proc/thread-self/ns/net")
	must(t, err)
	defer home.Close()
	ns := testutil.NetNS(t)
	must(t, unix.Setns(int(home.Fd()), unix.CLONE_NEWNET))
	return ns
}

// plugged makes a namespace that is on the bridge, and does not stay in it.
func plugged(t *testing.T, number, bridge int) *testutil.Namespace {
	t.Helper()
	ns := aside(t)
	name := fmt.Sprintf("port%d", number)
	must(t, netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: name, MasterIndex: bridge}, PeerName: "eth0", PeerNamespace: netlink.NsFd(ns.FD()),
	}))
	port, err := netlink.LinkByName(name)
	must(t, err)
	must(t, netlink.LinkSetUp(port))
	must(t, ns.Do(func() error {
		eth0, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		addr, err := netlink.ParseAddr(fmt.Sprintf("172.31.9.%d/24", number))
		if err != nil {
			return err
		}
		return errors.Join(netlink.AddrAdd(eth0, addr), netlink.LinkSetUp(eth0))
	}))
	return ns
}

// cleanUp ends the process of the tunnel, too, which outlives the daemon.
func (m *machine) cleanUp(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(m.path("strait.yaml")); err != nil {
		return // it was never started
	}
	file, err := build()
	must(t, err)
	must(t, m.ns.Do(func() error {
		if out, err := exec.Command(file, "cleanup", "--config", m.path("strait.yaml")).CombinedOutput(); err != nil {
			return fmt.Errorf("straitd cleanup: %w: %s", err, out)
		}
		return nil
	}))
}

// eventuallyHoldsOnly waits until the kernel has these frontends and no other.
func (m *machine) eventuallyHoldsOnly(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	testutil.Eventually(t, patience, func() error {
		got, err := m.frontends()
		if slices.Sort(got); err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("c%d: the kernel holds %v, want %v", m.number, got, want)
		}
		return err
	})
}

// http returns a client on the machine.
func (m *machine) http() *http.Client {
	dial := func(_ context.Context, network, addr string) (c net.Conn, err error) {
		err = m.ns.Do(func() error {
			c, err = net.DialTimeout(network, addr, time.Second)
			return err
		})
		return c, err
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 2 * time.Second}
}

// isReady waits until the kubelet would take the daemon for ready, and the status says that a plan
// was applied.
func (p *process) isReady(t *testing.T) {
	t.Helper()
	client := p.m.http()
	testutil.Eventually(t, patience, func() error {
		r, err := client.Get("http://127.0.0.1:9964/readyz")
		if err != nil {
			return err
		}
		r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("c%d: readyz answers %s", p.m.number, r.Status)
		}
		s, err := p.status()
		if err == nil && s.Applied.IsZero() {
			err = fmt.Errorf("c%d: no plan was applied", p.m.number)
		}
		return err
	})
}

// Two remote nodes have one WireGuard key, as cloned machines do. Every node names both; and every
// daemon is ready, also one that restarts, and goes on to take away what is not wanted any more.
func TestOneKeyOfTwoNodesStopsNothing(t *testing.T) {
	t.Parallel()
	machines := bridged(t, 3)
	other := "241.5.251.216:80/TCP" // default/serve
	machines[0].write(t, "manifests/leaves.yaml", service("leaves"))
	var running []*process
	for i, m := range machines {
		if i == 2 {
			testutil.Eventually(t, patience, func() error { _, err := os.Stat(machines[1].path("state/wireguard.key")); return err })
			key, err := os.ReadFile(machines[1].path("state/wireguard.key"))
			must(t, err)
			m.write(t, "state/wireguard.key", string(key))
		}
		running = append(running, m.start(t))
	}
	for _, p := range running {
		p.says(t, "node c3/n1", "publicKey", "node c2/n1")
		p.isReady(t)
	}
	running[0].kill(t)
	running[0] = machines[0].start(t)
	running[0].isReady(t)
	running[0].says(t, "node c3/n1", "publicKey", "node c2/n1")
	for _, m := range machines {
		if got, err := m.frontends(); err != nil || len(got) != 2 {
			t.Fatalf("c%d: the kernel holds %v (%v), want two frontends", m.number, got, err)
		}
	}
	must(t, os.Remove(machines[0].path("manifests/leaves.yaml")))
	for _, m := range machines {
		m.eventuallyHoldsOnly(t, other)
	}
}

// A record comes, from a build that says such things, in which a node claims every address. Every
// node names it, none routes by it, and the rest of the record counts.
func TestClaimOfEveryAddressIsLeftOut(t *testing.T) {
	t.Parallel()
	machines := bridged(t, 3)
	first, claims, late := machines[0], machines[1], machines[2]
	claims.config["nodePrefixes"] = []string{"10.9.2.0/24", "203.0.113.0/24"}
	claims.write(t, "manifests/more.yaml", strings.ReplaceAll(service("more"), "10.9.9.9", "10.9.2.9"))
	a, b := first.start(t), claims.start(t)
	b.isReady(t)
	a.isReady(t)

	// The record as another build would have sent it is made in the state of the first, which
	// passes it on.
	sent, bad := []byte{0x45, 203, 0, 113, 0, 24}, []byte{0x45, 0, 0, 0, 0, 0}
	state := first.path("state/replica.cbor")
	want := []string{"241.5.251.216:80/TCP", "241.145.101.28:80/TCP"} // default/serve, default/more
	first.eventuallyHoldsOnly(t, want...)
	testutil.Eventually(t, patience, func() error {
		text, err := savedRecords(state)
		// More is the service of an endpoint and an export of c2, and of an allocation of either
		// cluster.
		if err == nil && (bytes.Count(text, sent) != 1 || bytes.Count(text, []byte("\x64more")) < 4) {
			err = errors.New("the state does not hold all records yet")
		}
		return err
	})
	b.kill(t)
	a.kill(t)
	log, err := statelog.Open(state)
	must(t, err)
	var saved []statelog.Op
	must(t, log.Values(func(key string, value []byte) error {
		saved = append(saved, statelog.Op{Key: key, Value: bytes.Replace(value, sent, bad, 1)})
		return nil
	}))
	must(t, log.Replace(func(yield func(statelog.Op, error) bool) {
		for _, op := range saved {
			if !yield(op, nil) {
				return
			}
		}
	}))

	for _, p := range []*process{first.start(t), late.start(t)} {
		p.says(t, "node c2/n1", "prefixes[", "0.0.0.0/0 covers every address: left out")
		p.isReady(t)
		p.m.eventuallyHoldsOnly(t, want...)
		must(t, p.m.ns.Do(func() error {
			routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: 5354}, netlink.RT_FILTER_TABLE)
			var got []string
			for _, r := range routes {
				got = append(got, fmt.Sprint(r.Dst))
			}
			if err == nil && (!slices.Contains(got, "10.9.2.0/24") || slices.Contains(got, "0.0.0.0/0") || slices.Contains(got, "<nil>")) {
				err = fmt.Errorf("c%d routes %v", p.m.number, got)
			}
			return err
		}))
	}
}

// savedRecords returns the bytes of the records in a state file, one after the other.
func savedRecords(path string) (text []byte, err error) {
	log, err := statelog.Open(path)
	if err == nil {
		err = log.Values(func(_ string, value []byte) error { text = append(text, value...); return nil })
	}
	return text, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
