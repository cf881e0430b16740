package gossip

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/l4"
)

// patience is how long a test waits for what should take less: machines are noisy.
const patience = time.Minute

// testPort is the same for all daemons of a test: each has a loopback address of its own.
const testPort = 27946

// testNet is a random part of 127.0.0.0/8, and the addresses in it begin at a random one, so that
// test binaries do not meet.
var testNet = netip.PrefixFrom(netip.AddrFrom4([4]byte{127, byte(1 + rand.IntN(250))}), 16)

var firstAddr = rand.Uint32()

var nextAddr atomic.Uint32

func testAddr() netip.AddrPort {
	a, n := testNet.Addr().As4(), firstAddr+nextAddr.Add(1)
	a[2], a[3] = byte(n/254), byte(1+n%254)
	return netip.AddrPortFrom(netip.AddrFrom4(a), testPort)
}

// keyOf makes a gossip key.
func keyOf(b byte) gossipkey.Key { return gossipkey.Key(bytes.Repeat([]byte{b}, gossipkey.Size)) }

var testKeys = gossipkey.Ring{keyOf(7)}

// daemon is a running Gossip that a test can stop.
type daemon struct {
	*Gossip
	t      *testing.T
	cancel context.CancelFunc
	ended  chan error
}

func origin(cluster, name string) clustermesh.Origin {
	return clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(name)}
}

func config(self clustermesh.Origin, seeds ...netip.AddrPort) Config {
	c := Config{Self: self, Bind: testAddr(), Keys: testKeys}
	for _, s := range seeds {
		c.Seeds = append(c.Seeds, s.String())
	}
	return c
}

func start(t *testing.T, c Config) *daemon {
	t.Helper()
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return running(t, g)
}

func running(t *testing.T, g *Gossip) *daemon {
	ctx, cancel := context.WithCancel(context.Background())
	d := &daemon{Gossip: g, t: t, cancel: cancel, ended: make(chan error, 1)}
	go func() { d.ended <- g.Run(ctx) }()
	t.Cleanup(d.stop)
	return d
}

func (d *daemon) stop() {
	if d.cancel == nil {
		return
	}
	d.cancel()
	d.cancel = nil
	select {
	case err := <-d.ended:
		if err != nil {
			d.t.Errorf("%s: %v", d.cfg.Self, err)
		}
	case <-time.After(patience):
		d.t.Errorf("%s does not stop", d.cfg.Self)
	}
}

// say publishes a node with one endpoint that tells its number.
func (d *daemon) say(n int) (changed bool) {
	return d.Publish(clustermesh.Content{
		Node: &clustermesh.Node{Name: d.cfg.Self.Node, Addresses: []netip.Addr{d.cfg.Bind.Addr()}, GossipPort: d.cfg.Bind.Port()},
		Endpoints: []clustermesh.Endpoint{{
			Service: clustermesh.ServiceName{Namespace: "default", Name: "serve"},
			Addr:    netip.MustParseAddr("10.0.0.1"), Pod: fmt.Sprint(n), Node: d.cfg.Self.Node, Ready: true,
		}},
	})
}

// said is the number that the daemon believes a node said last; -1 if it knows nothing of it.
func (d *daemon) said(o clustermesh.Origin) int {
	n := -1
	for _, e := range d.State().Records.Get(o).Content.Endpoints {
		fmt.Sscan(e.Pod, &n)
	}
	return n
}

func (d *daemon) contact(o clustermesh.Origin) clustermesh.Contact { return d.State().Contacts.Get(o) }

func (d *daemon) hasProblem(parts ...string) bool {
	for _, p := range d.Problems() {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(p.String(), part)
		}
		if all {
			return true
		}
	}
	return false
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, cond func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !cond() {
		if time.Since(began) > patience {
			t.Fatalf("not within %s: %s", patience, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return time.Since(began)
}

func TestFiveNodesConverge(t *testing.T) {
	t.Parallel()
	first := config(origin("a", "n1"))
	ds := []*daemon{start(t, first)}
	for _, o := range []clustermesh.Origin{origin("a", "n2"), origin("b", "n1"), origin("b", "n2"), origin("c", "n1")} {
		ds = append(ds, start(t, config(o, first.Bind)))
	}
	for i, d := range ds {
		d.say(i)
	}
	all := func() bool {
		for _, d := range ds {
			for i, e := range ds {
				if d.said(e.cfg.Self) != i || d.contact(e.cfg.Self) != clustermesh.Alive {
					return false
				}
			}
		}
		return true
	}
	t.Logf("converged after %s", eventually(t, "all hold what all say", all))
	eventually(t, "all have completed an exchange", func() bool { // not only heard what all push
		return !slices.ContainsFunc(ds, func(d *daemon) bool { ok, _ := d.Synced(); return !ok })
	})

	ds[3].say(33)
	took := eventually(t, "a change is everywhere", func() bool {
		for _, d := range ds {
			if d.said(ds[3].cfg.Self) != 33 {
				return false
			}
		}
		return true
	})
	t.Logf("a change was everywhere after %s", took)

	// One leader in each cluster: the lowest name. What it writes arrives; what others write does not.
	leads := map[int]bool{0: true, 2: true, 4: true}
	eventually(t, "the lowest names lead", func() bool {
		for i, d := range ds {
			if d.Leader() != leads[i] {
				return false
			}
		}
		return true
	})
	alloc := func(ip string) clustermesh.Content {
		return clustermesh.Content{Allocations: []clustermesh.Allocation{{
			Service: clustermesh.ServiceName{Namespace: "default", Name: "serve"}, IP: netip.MustParseAddr(ip)}}}
	}
	ds[1].PublishCluster(alloc("241.0.0.9"))
	ds[0].PublishCluster(alloc("241.0.0.1"))
	eventually(t, "the leader's record is everywhere", func() bool {
		for _, d := range ds {
			a := d.State().Records.Get(clustermesh.Origin{Cluster: "a"}).Content.Allocations
			if len(a) != 1 || a[0].IP != netip.MustParseAddr("241.0.0.1") {
				return false
			}
		}
		return true
	})
	for _, d := range ds {
		if p := d.Problems(); len(p) != 0 {
			t.Errorf("%s: %v", d.cfg.Self, p)
		}
	}
}

// TestStoppedDaemonIsQuiet: the machine answers, so no node claims anything; the next name leads; and the
// daemon that comes back takes up where it was.
func TestStoppedDaemonIsQuiet(t *testing.T) {
	t.Parallel()
	c1 := config(origin("a", "n1"))
	c1.StateDir = t.TempDir()
	c2, c3 := config(origin("a", "n2"), c1.Bind), config(origin("b", "n1"), c1.Bind)
	d1, d2, d3 := start(t, c1), start(t, c2), start(t, c3)
	d1.say(1)
	d2.say(2)
	d3.say(3)
	eventually(t, "all are heard", func() bool { return d2.said(c1.Self) == 1 && d3.said(c2.Self) == 2 && d1.said(c3.Self) == 3 })
	eventually(t, "n1 leads", func() bool { return d1.Leader() && !d2.Leader() })

	d1.stop()
	for _, d := range []*daemon{d2, d3} {
		took := eventually(t, "the stopped daemon is quiet", func() bool {
			if d.contact(c1.Self) == clustermesh.Silent {
				t.Fatal("a machine that answers is called silent")
			}
			return d.contact(c1.Self) == clustermesh.Quiet
		})
		t.Logf("%s: quiet after %s", d.cfg.Self, took)
		if d.said(c1.Self) != 1 || len(d.State().Records.Get(d.cfg.Self).Content.Silent) != 0 {
			t.Errorf("%s withdrew or claimed: %+v", d.cfg.Self, d.State().Records.Get(d.cfg.Self))
		}
	}
	eventually(t, "n2 leads", d2.Leader)

	loaded, err := New(c1)
	if err != nil {
		t.Fatal(err)
	}
	if ok, _ := loaded.Synced(); !ok || loaded.Fresh() {
		t.Errorf("what was loaded is synced: %v, want true; fresh: %v, want false", ok, loaded.Fresh())
	}
	again := start(t, c1)
	eventually(t, "the others have told the new life", again.Fresh)
	if ok, waiting := again.Synced(); !ok {
		t.Errorf("state was loaded, but the daemon waits for %s", waiting)
	}
	if again.said(c1.Self) != 1 || again.said(c2.Self) != 2 || again.said(c3.Self) != 3 {
		t.Error("the state of the last life is not held")
	}
	again.say(10)
	eventually(t, "the new life is heard", func() bool {
		return d2.said(c1.Self) == 10 && d3.said(c1.Self) == 10 && d3.contact(c1.Self) == clustermesh.Alive
	})
	eventually(t, "n1 leads again", func() bool { return again.Leader() && !d2.Leader() })
	// The first life is declared dead meanwhile; that says nothing of the second.
	for range 50 {
		time.Sleep(100 * time.Millisecond)
		if d2.contact(c1.Self) != clustermesh.Alive {
			t.Fatalf("contact with the restarted daemon: %s", d2.contact(c1.Self))
		}
	}
}

func TestWrongKey(t *testing.T) {
	t.Parallel()
	good := config(origin("a", "n1"))
	bad := config(origin("a", "n2"), good.Bind)
	good.Seeds = []string{bad.Bind.String()} // each meets the other's key on a stream that it opens, and on one that it accepts
	bad.Keys = gossipkey.Ring{keyOf(8)}
	d1, d2 := start(t, good), start(t, bad)
	d1.say(1)
	d2.say(2)
	eventually(t, "the newcomer says that the key differs", func() bool {
		return d2.hasProblem("gossip key differs", good.Bind.String(), "same key file")
	})
	eventually(t, "the other side says so too", func() bool { return d1.hasProblem("gossip key differs", bad.Bind.String()) })
	if d1.said(bad.Self) != -1 || d2.said(good.Self) != -1 || d1.contact(bad.Self) != clustermesh.Held {
		t.Error("records crossed in spite of the key")
	}
	if ok, waiting := d2.Synced(); ok || !strings.Contains(waiting, good.Bind.String()) {
		t.Errorf("synced: %v, waiting for %q", ok, waiting)
	}

	d2.stop()
	again := config(origin("a", "n2"), good.Bind)
	again.Bind = bad.Bind
	d2 = start(t, again)
	d2.say(2)
	took := eventually(t, "with the right key the daemon is in", func() bool { return d1.contact(bad.Self) == clustermesh.Alive })
	took += eventually(t, "no daemon reports it any more", func() bool { return !d1.hasProblem("gossip key") && !d2.hasProblem("gossip key") })
	if took > node.ProblemLife/2 {
		t.Errorf("gone after %s, as if no daemon had noticed the right key", took)
	}
}

func TestTwoNodesOfOneName(t *testing.T) {
	t.Parallel()
	seed := config(origin("a", "n1"))
	one, two := config(origin("a", "twin"), seed.Bind), config(origin("a", "twin"), seed.Bind)
	d0, d1, d2 := start(t, seed), start(t, one), start(t, two)
	d1.say(1)
	d2.say(2)
	for _, d := range []*daemon{d0, d1, d2} {
		took := eventually(t, "everyone says so, with both addresses", func() bool {
			return d.hasProblem("node a/twin", one.Bind.String(), two.Bind.String(), "a unique name")
		})
		t.Logf("%s: after %s", d.cfg.Bind, took)
	}
}

// TestTwinOfSeed: a daemon whose seed has its own name finds out at once.
func TestTwinOfSeed(t *testing.T) {
	t.Parallel()
	one := config(origin("a", "twin"))
	two := config(origin("a", "twin"), one.Bind)
	d1, d2 := start(t, one), start(t, two)
	eventually(t, "both twins say so", func() bool { return d1.hasProblem("node a/twin") && d2.hasProblem("node a/twin") })
}

func TestPortInUse(t *testing.T) {
	c := config(origin("a", "n1"))
	l, err := net.Listen("tcp", c.Bind.String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	err = g.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), c.Bind.String()+" is in use") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
}

func TestUnreachableSeed(t *testing.T) {
	t.Parallel()
	away := testAddr()
	c := config(origin("a", "n1"), away)
	d := start(t, c)
	eventually(t, "the seed is reported", func() bool { return d.hasProblem("gossip seed "+away.String(), "does not answer", "open") })
	if ok, _ := d.Synced(); ok {
		t.Error("synced though the only seed does not answer")
	}
	// Alone, it leads after a while: local changes must still apply.
	eventually(t, "it leads", d.Leader)
	// The seed comes up: the report goes.
	late := config(origin("a", "n2"))
	late.Bind = away
	start(t, late)
	eventually(t, "the report goes", func() bool { ok, _ := d.Synced(); return ok && len(d.Problems()) == 0 })
}

func TestSeedThatIsSelf(t *testing.T) {
	c := config(origin("a", "n1"))
	c.Seeds = []string{c.Bind.String()}
	d := start(t, c)
	eventually(t, "there is no daemon to wait for", func() bool { ok, _ := d.Synced(); return ok && d.Fresh() })
}

func TestConfigErrors(t *testing.T) {
	for what, change := range map[string]func(*Config){
		"no key":      func(c *Config) { c.Keys = nil },
		"advertise":   func(c *Config) { c.Bind = netip.MustParseAddrPort("0.0.0.0:7946") },
		"port":        func(c *Config) { c.Bind = netip.MustParseAddrPort("127.0.0.1:0") },
		"HOST:PORT":   func(c *Config) { c.Seeds = []string{"nowhere"} },
		"CLUSTER/NOD": func(c *Config) { c.Self.Node = "" },
	} {
		c := config(origin("a", "n1"))
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: error %v", what, err)
		}
	}
}

func TestLoadKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		os.Remove(path)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	const good = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n"
	write(good, 0o600)
	if k, err := LoadKeys(path); err != nil || !slices.Equal(k, testKeys) {
		t.Errorf("key %v, error %v", k, err)
	}
	write(good, 0o644)
	if _, err := LoadKeys(path); err == nil || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("a readable key: error %v", err)
	}
	write("c2hvcnQ=", 0o600)
	if _, err := LoadKeys(path); err == nil || !strings.Contains(err.Error(), "32 bytes") || strings.Contains(err.Error(), "c2hvcnQ") {
		t.Errorf("a short key: error %v", err)
	}
	write("", 0o600)
	if _, err := LoadKeys(path); err == nil {
		t.Error("an empty key was read")
	}
}

// TestOwnPublicationIsNoNews: who publishes sees it in State at once and is not woken by it; others are.
func TestOwnPublicationIsNoNews(t *testing.T) {
	t.Parallel()
	c1 := config(origin("a", "n1"))
	d1, d2 := start(t, c1), start(t, config(origin("a", "n2"), c1.Bind))
	d1.say(1)
	d2.say(1)
	eventually(t, "both are heard, and n1 leads", func() bool {
		return d1.said(d2.cfg.Self) == 1 && d2.said(c1.Self) == 1 && d1.Leader() && !d2.Leader()
	})
	eventually(t, "all is quiet", func() bool { return !d1.woken(time.Second) && !d2.woken(0) })
	content := clustermesh.Content{Allocations: []clustermesh.Allocation{{
		Service: clustermesh.ServiceName{Namespace: "default", Name: "serve"}, IP: netip.MustParseAddr("241.0.0.1")}}}
	for what, publish := range map[string]func() bool{
		"own record": func() bool { return d1.say(2) && d1.said(c1.Self) == 2 },
		"cluster's record": func() bool {
			return d1.PublishCluster(content) && len(d1.State().Records.Get(clustermesh.Origin{Cluster: "a"}).Content.Allocations) == 1
		},
	} {
		if !publish() {
			t.Errorf("%s: not in State at once", what)
		}
		if !d2.woken(patience) {
			t.Errorf("%s: the other daemon is not woken", what)
		}
		if d1.woken(500 * time.Millisecond) {
			t.Errorf("%s: the publisher is woken by what it said", what)
		}
	}
	if d1.say(2) || d1.PublishCluster(content) || d2.PublishCluster(clustermesh.Content{}) {
		t.Error("what changes nothing is reported as a change")
	}
}

// woken reports whether Changed had a value within a while.
func (d *daemon) woken(within time.Duration) bool {
	select {
	case <-d.Changed():
		return true
	default:
	}
	select {
	case <-d.Changed():
		return true
	case <-time.After(within):
		return false
	}
}

// TestLargeClusterRecord: of changes that pour in not each is a version that goes to every node,
// but the last one arrives.
func TestLargeClusterRecord(t *testing.T) {
	t.Parallel()
	c1 := config(origin("a", "n1"))
	d1, d2 := start(t, c1), start(t, config(origin("b", "n1"), c1.Bind))
	eventually(t, "n1 leads", d1.Leader)
	d1.say(1)
	d2.say(1)
	eventually(t, "both are heard", func() bool { return d1.said(d2.cfg.Self) == 1 && d2.said(c1.Self) == 1 })
	const changes = 40
	var content clustermesh.Content
	for i := range changes {
		content = clustermesh.Content{}
		for n := range 3000 {
			content.Exports = append(content.Exports, clustermesh.Export{
				Service: clustermesh.ServiceName{Namespace: "default", Name: fmt.Sprintf("service-%04d", n)}, Type: clustermesh.ClusterSetIP,
				Ports: []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: uint16(80 + i)}}, Created: 1,
			})
		}
		d1.PublishCluster(content)
	}
	cluster := clustermesh.Origin{Cluster: "a"}
	eventually(t, "the last change arrives", func() bool {
		r := d2.State().Records.Get(cluster)
		return len(r.Content.Exports) == 3000 && r.Content.Exports[0].Ports[0].Port == 80+changes-1
	})
	if v := d2.State().Records.Get(cluster).Stamp.Version; v > changes/2 {
		t.Errorf("%d versions of %d changes", v, changes)
	}
}
