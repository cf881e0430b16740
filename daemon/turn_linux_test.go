package daemon

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/daemon/metrics"
	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/testutil"
)

// TestTurnOfOneBackend: a turn that changes one backend touches the load balancer and nothing else,
// however many peers there are. The kernel, the tunnel and the replica are real.
func TestTurnOfOneBackend(t *testing.T) {
	testutil.NeedTun(t)
	if !testutil.Inside(t, 0) {
		return
	}
	w := newBusy(t, 20, 20)
	for round := range 4 {
		w.flip(t, round)
		w.ran = nil
		w.turn(t)
		if want := []string{"socklb", "sockdestroy"}; !slices.Equal(w.ran, want) {
			t.Errorf("round %d: parts that ran: %v, want %v", round, w.ran, want)
		}
		w.holds(t)
	}
	w.ran = nil
	if w.turn(t); len(w.ran) > 0 {
		t.Errorf("a turn without news runs %v", w.ran)
	}
	w.d.kernel.stack.mark(disturb, "route")
	if w.turn(t); !slices.Equal(w.ran, []string{"route", "route"}) {
		t.Errorf("after another program changed routes: %v", w.ran)
	}
}

// BenchmarkTurn measures a turn that changes one backend of one of 10,000 Services with 10
// endpoints each, with 1,000 peers: from the bytes of a record to the map, and to the turn's end.
func BenchmarkTurn(b *testing.B) {
	testutil.NeedTun(b)
	if !testutil.Inside(b, 0) {
		return
	}
	w := newBusy(b, 1000, 10_000)
	var flips, turns []time.Duration
	for round := 0; b.Loop(); round++ {
		b.StopTimer()
		bytes := w.record(b, round)
		b.StartTimer()
		start := time.Now()
		w.receive(b, bytes)
		w.turn(b)
		turns = append(turns, time.Since(start))
		flips = append(flips, w.flipped.Sub(start))
	}
	w.holds(b)
	report := func(name string, all []time.Duration) {
		slices.Sort(all)
		for _, p := range []int{50, 99} {
			b.ReportMetric(float64(all[min(len(all)*p/100, len(all)-1)].Microseconds())/1000, fmt.Sprintf("%s_ms_p%d", name, p))
		}
	}
	report("flip", flips)
	report("turn", turns)
}

// busy is a node of cluster a that has tunnels to many nodes, whose clusters export services of ten
// endpoints each.
type busy struct {
	*replica.Replica
	d       *Daemon
	states  []clustermesh.Content // of each node
	ran     []string              // the parts that ran, in order
	flipped time.Time             // when the load balancer was done last
}

const busyEndpoints = 10

func busyOrigin(node int) clustermesh.Origin {
	return clustermesh.Origin{Cluster: clustermesh.ClusterName(fmt.Sprintf("c%d", node%busyEndpoints)), Node: clustermesh.NodeName(fmt.Sprintf("n%d", node))}
}

// busyState gives each service to one of ten clusters, and one endpoint of it to a node in ten.
func busyState(nodes, services int) (own clustermesh.Content, clusters map[clustermesh.ClusterName]clustermesh.Content, each []clustermesh.Content) {
	clusters, each = map[clustermesh.ClusterName]clustermesh.Content{}, make([]clustermesh.Content, nodes)
	for n := range each {
		var k key.Public
		binary.BigEndian.PutUint32(k[:], uint32(n+1))
		each[n].Node = &clustermesh.Node{
			Name: busyOrigin(n).Node, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{198, 18, byte(n >> 8), byte(n)})},
			Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{20, byte(n >> 8), byte(n), 0}), 24)},
			Inside:   netip.AddrFrom4([4]byte{20, byte(n >> 8), byte(n), 1}), PublicKey: k, WireGuardPort: 51820,
		}
	}
	for s := range services {
		name := clustermesh.ServiceName{Namespace: "default", Name: fmt.Sprintf("s%05d", s)}
		own.Allocations = append(own.Allocations, clustermesh.Allocation{Service: name, IP: netip.AddrFrom4([4]byte{241, 1, byte(s >> 8), byte(s)})})
		cluster := busyOrigin(s).Cluster
		c := clusters[cluster]
		c.Exports = append(c.Exports, clustermesh.Export{Service: name, Type: clustermesh.ClusterSetIP, Created: 1, Families: []clustermesh.Family{clustermesh.IPv4},
			Ports: []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80}}})
		clusters[cluster] = c
		for e := range busyEndpoints {
			n := (s%busyEndpoints + busyEndpoints*(s/busyEndpoints*busyEndpoints+e)) % nodes
			each[n].Endpoints = append(each[n].Endpoints, clustermesh.Endpoint{
				Service: name, Addr: netip.AddrFrom4([4]byte{20, byte(n >> 8), byte(n), byte(len(each[n].Endpoints) + 2)}), Node: busyOrigin(n).Node,
				Ready: true, Serving: true, Pod: fmt.Sprintf("p%d-%d", s, e), Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}},
			})
		}
	}
	return own, clusters, each
}

// newBusy is a node after the first turns of its life.
func newBusy(t testing.TB, nodes, services int) *busy {
	t.Helper()
	w := newborn(t, nodes, services)
	w.run(t)
	for range 3 {
		w.turn(t)
	}
	w.holds(t)
	return w
}

// newborn is a node before its first turn. Nothing serves its tunnels' device.
func newborn(t testing.TB, nodes, services int) *busy {
	t.Helper()
	self := clustermesh.Origin{Cluster: "a", Node: "n1"}
	own, clusters, each := busyState(nodes, services)
	w := &busy{states: each, Replica: replica.New(replica.Config{Self: self, Epoch: 1}, nil)}
	w.put(t, clustermesh.Origin{Cluster: "a"}, own, 1)
	for c, content := range clusters {
		w.put(t, clustermesh.Origin{Cluster: c}, content, 1)
	}
	for n, content := range each {
		w.put(t, busyOrigin(n), content, 1)
	}
	dir, device := t.TempDir(), fmt.Sprintf("stt%d", os.Getpid())
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	c, err := ParseConfig([]byte(fmt.Sprintf(`
cluster: a
node: n1
source: {manifest: %[1]s}
stateDir: %[1]s
runDir: %[1]s/run
bpf: {pins: %[2]s/strait, cgroup: %[3]s, allowVirtualRoot: true, maxFrontends: 16384, maxBackends: 262144, maxSockets: 1024}
gossip: {bind: "127.0.0.1:7946", keyFile: %[1]s/key}
mesh: {device: %[4]s, implementation: userspace, tunnel: external}
`, dir, testutil.BPFFS(t), testutil.InsideCgroup(), device)), func(*Config) error { return os.WriteFile(filepath.Join(dir, "key"), []byte("x"), 0o600) })
	if err != nil {
		t.Fatal(err)
	}
	w.d = &Daemon{config: c, log: log, kube: noServer{}, wake: notify.New(), metrics: metrics.New(metrics.Build{}), gossip: w, history: newHistory(c, log),
		source: busySource{}, who: who{Cluster: "a", Advertise: netip.MustParseAddrPort("192.0.2.250:7946")}}
	w.d.files = w.d.watchFiles(Config{}, nil)
	if w.d.kernel, err = newKernel(c, log, w.d.metrics); err != nil {
		t.Fatal(err)
	}
	w.d.kernel.stack.observe = func(target string, _ time.Duration, _ error) {
		w.ran = append(w.ran, target)
		if target == "socklb" {
			w.flipped = time.Now()
		}
	}
	return w
}

// run serves the tunnel's device and watches the kernel until the test ends.
func (w *busy) run(t testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() {
		ended <- wireguard.RunTunnel(ctx, wireguard.TunnelArgs{Device: w.d.config.Mesh.Device, MemoryLimit: -1})
	}()
	disturbed := notify.New()
	go func() { ended <- w.d.kernel.watch(ctx, disturbed) }()
	if !testutil.Signalled(disturbed, 5*time.Second) {
		t.Fatal("the kernel is not watched")
	}
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		w.d.kernel.close()
		if err := CleanUp(w.d.config); err != nil {
			t.Error(err)
		}
	})
}

// turn is one of the daemon's.
func (w *busy) turn(t testing.TB) {
	t.Helper()
	if err := w.d.apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := w.d.now(); len(m.waiting) > 0 {
		t.Fatalf("waiting for %v", m.waiting)
	}
}

// flip has a node change its first endpoint.
func (w *busy) flip(t testing.TB, round int) { w.receive(t, w.record(t, round)) }

// record is what a node sends whose first endpoint became ready, or not.
func (w *busy) record(t testing.TB, round int) []byte {
	t.Helper()
	n := round % len(w.states)
	c := w.states[n]
	c.Endpoints = slices.Clone(c.Endpoints)
	c.Endpoints[0].Ready = !c.Endpoints[0].Ready
	w.states[n] = c
	return w.encode(t, busyOrigin(n), c, uint64(round+2))
}

func (w *busy) encode(t testing.TB, o clustermesh.Origin, c clustermesh.Content, version uint64) []byte {
	t.Helper()
	e, err := replica.NewEntry(clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: version}, Content: c})
	if err != nil {
		t.Fatal(err)
	}
	b, err := replica.Encode(&replica.Snapshot{Entries: []replica.Entry{e}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (w *busy) receive(t testing.TB, b []byte) {
	m, err := replica.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if out := w.Replica.Receive(clustermesh.Origin{Cluster: "c0", Node: "n0"}, m); len(out.Changed) != 1 {
		t.Fatalf("a record changed nothing: %v", out.Problems)
	}
}

func (w *busy) put(t testing.TB, o clustermesh.Origin, c clustermesh.Content, version uint64) {
	t.Helper()
	w.receive(t, w.encode(t, o, c, version))
}

// holds compares the kernel's maps and the device with the plan.
func (w *busy) holds(t testing.TB) {
	t.Helper()
	want := w.d.now().result.Desired
	have, err := w.d.kernel.lb.Frontends()
	if err != nil || len(have) != len(want.Frontends) || len(have) == 0 {
		t.Fatalf("%d frontends of %d, %v", len(have), len(want.Frontends), err)
	}
	for i, f := range have {
		if !f.Equal(want.Frontends[i]) {
			t.Fatalf("the kernel holds %v, want %v", f, want.Frontends[i])
		}
	}
	peers, err := w.d.kernel.device.Peers()
	if err != nil || len(peers) != len(w.states) || len(want.Peers) != len(w.states) {
		t.Fatalf("%d peers of %d, %v", len(peers), len(w.states), err)
	}
}

// The rest of what a daemon asks of its gossip.
func (w *busy) Run(context.Context) error                              { return nil }
func (w *busy) SetSeeds(gossip.Seeds) error                            { return nil }
func (w *busy) Publish(c clustermesh.Content) bool                     { return len(w.Replica.Publish(c).Changed) > 0 }
func (w *busy) PublishCluster(clustermesh.Content) bool                { return false }
func (w *busy) Leader() bool                                           { return false }
func (w *busy) Synced() (bool, string)                                 { return true, "" }
func (w *busy) Fresh() bool                                            { return true }
func (w *busy) Changed() <-chan struct{}                               { return nil }
func (w *busy) Heard() map[clustermesh.Origin]time.Time                { return nil }
func (w *busy) Bytes() []gossip.Bytes                                  { return nil }
func (w *busy) Refused() map[string]uint64                             { return nil }
func (w *busy) Problems() []clustermesh.Problem                        { return nil }
func (w *busy) Repin(authority.Pins)                                   {}
func (w *busy) SetLax(bool)                                            {}
func (w *busy) Reroot(*authority.PrivateKey)                           {}
func (w *busy) RTTs() map[clustermesh.Origin]time.Duration             { return nil }
func (w *busy) Ways() gossip.Ways                                      { return gossip.Ways{} }
func (w *busy) Ahead(clustermesh.Origin) (time.Duration, bool)         { return 0, false }
func (w *busy) Distances() map[clustermesh.ClusterName]uint32          { return nil }
func (w *busy) Rekey(gossipkey.Ring) error                             { return nil }
func (w *busy) Accept(clustermesh.Accept, clustermesh.LocalNamespaces) {}
func (w *busy) Trust() gossip.Trust                                    { return gossip.Trust{} }

// Query implements replication.
func (w *busy) Query(context.Context, clustermesh.NodeName) (net.Conn, error) {
	return nil, errors.New("there are no other daemons")
}

func (w *busy) State() clustermesh.State {
	s := clustermesh.State{Records: w.Records(), Contacts: clustermesh.ByOrigin[clustermesh.Contact]{}}
	for n := range w.states {
		s.Contacts = s.Contacts.With(busyOrigin(n), clustermesh.Alive)
	}
	return s
}

// busySource knows the own node alone.
type busySource struct{}

func (busySource) Run(context.Context) error { return nil }
func (busySource) Changed() <-chan struct{}  { return nil }
func (busySource) Local() (clustermesh.Local, bool) {
	return clustermesh.Local{Nodes: []clustermesh.Node{{Name: "n1", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.250")},
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.1.1.0/24")}}}}, true
}
