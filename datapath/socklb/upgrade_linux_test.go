package socklb

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// conversation is a live socket through a frontend, whose answers and peer are looked at again and again.
type conversation struct {
	c         *client
	vip       netip.AddrPort
	connected bool
	stream    bool
}

// converse opens each kind of socket in each form of address through the frontends of the families.
func converse(t testing.TB, vips map[l4.Proto]map[string]netip.AddrPort) (all []conversation) {
	t.Helper()
	for _, f := range families {
		tcp, udp := vips[l4.TCP][f.name], vips[l4.UDP][f.name]
		s := conversation{newClient(t, f, unix.SOCK_STREAM), tcp, true, true}
		d := conversation{newClient(t, f, unix.SOCK_DGRAM), udp, true, false}
		u := conversation{newClient(t, f, unix.SOCK_DGRAM), udp, false, false}
		for _, v := range []conversation{s, d} {
			if err := v.c.connect(v.vip); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, s, d, u)
	}
	t.Cleanup(func() {
		for _, v := range all {
			v.c.close()
		}
	})
	return all
}

// goesOn sends something and checks who answers, and as whom.
func (v conversation) goesOn(t testing.TB, when string) {
	t.Helper()
	send := v.c.write
	if !v.connected {
		send = func() error { return v.c.send(v.vip) }
	}
	if err := send(); err != nil {
		t.Errorf("%s: %s send to %s: %v", when, v.c.f.name, v.vip, err)
		return
	}
	_, from, err := v.c.receive()
	if !v.stream && errors.Is(err, unix.EAGAIN) { // the machine lost the datagram: once is no fault
		if err = send(); err == nil {
			_, from, err = v.c.receive()
		}
	}
	if err != nil || !v.stream && from != v.vip {
		t.Errorf("%s: %s answer of %s is from %v, %v", when, v.c.f.name, v.vip, from, err)
	}
	if peer, err := v.c.peer(); v.connected && (err != nil || peer != v.vip) {
		t.Errorf("%s: %s getpeername shows %v, %v; want %v", when, v.c.f.name, peer, err, v.vip)
	}
}

// oldWorld is what was running when the upgrade comes: frontends, pods, load and conversations.
type oldWorld struct {
	fronts []datapath.Frontend
	vips   map[l4.Proto]map[string]netip.AddrPort
	storms []*churned
	talks  []conversation
	stop   atomic.Bool
	wg     sync.WaitGroup
	count  atomic.Int64
}

// newOldWorld has its frontends in the maps of the older layout.
func newOldWorld(t testing.TB, cfg Config) *oldWorld {
	vips := map[l4.Proto]map[string]netip.AddrPort{l4.TCP: {}, l4.UDP: {}}
	w := &oldWorld{vips: vips}
	for i, f := range families {
		for proto, vip := range vips {
			// Ports differ by family, since mapped sockets have the addresses of IPv4.
			at := netip.AddrPortFrom(f.vip, uint16(100+i))
			vip[f.name] = at
			pod := echo(t, proto, netip.AddrPortFrom(f.pod, 0))
			w.fronts = append(w.fronts, datapath.Frontend{Addr: l4.New(at.Addr(), at.Port(), proto), Backends: one(pod)})
		}
		c := newChurned(t, f, uint16(80+i))
		w.storms = append(w.storms, c)
		w.fronts = append(w.fronts, c.next())
		c.applied.Store(c.wanted.Load())
	}
	openOlder(t, cfg, w.fronts)
	w.talks = converse(t, vips)
	for i, f := range families {
		w.wg.Go(func() { w.count.Add(storm(t, f, w.storms[i:i+1], endless, &w.stop)) })
	}
	return w
}

func (w *oldWorld) talk(t testing.TB, when string) {
	t.Helper()
	for _, v := range w.talks {
		v.goesOn(t, when)
	}
}

// end stops the load and returns how many connects there were.
func (w *oldWorld) end() int64 {
	w.stop.Store(true)
	w.wg.Wait()
	return w.count.Load()
}

// TestUpgradeLayout: under load and with live conversations, the maps of an older layout become those of this one.
// No connect fails, no conversation ends or shows another peer, and what is in force stays so. Old and new programs
// write the same records of sockets meanwhile: none is lost and none stays.
func TestUpgradeLayout(t *testing.T) {
	if !inside(t) {
		return
	}
	for _, tt := range []struct {
		name    string
		sockets uint32
	}{
		{"roomy", 1024},
		{"crowded", 64},  // old and new programs want the same homes
		{"two homes", 2}, // nearly all records are in the sockets' own storage
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config(t)
			cfg.MaxSockets, cfg.upgrades = tt.sockets, &fromOlder
			testUpgradeLayout(t, cfg)
		})
	}
}

func testUpgradeLayout(t *testing.T, cfg Config) {
	w := newOldWorld(t, cfg)
	pod := subtree(t, "pod")
	optOutOlder(t, cfg, pod)
	before := mapIDs(t, cfg.Pins, olderNumber)
	w.talk(t, "before")
	var steps []string
	cfg.step = func(s string) { steps = append(steps, s); w.talk(t, s) }
	l := opened(t, cfg)
	w.talk(t, "after")
	checkFronts(t, l, w.fronts)
	if got := entries(t, cfg.Pins); !slices.Contains(got, layout.Dir(layout.Number)) || slices.Contains(got, layout.Dir(olderNumber)) {
		t.Errorf("pins hold %v", got)
	}
	for name, id := range mapIDs(t, cfg.Pins, layout.Number) {
		if old, had := before[name]; had == (name == layout.MapAddressSieve) || had && (old == id) == (name == layout.MapSets) {
			t.Errorf("map %s is number %d, and was number %d (%v)", name, id, old, had)
		}
	}
	w.checkCounts(t, l)
	checkOptedOut(t, l, pod, w.talks[1].vip)
	w.change(t, l)
	w.talk(t, "after a change")
	n := w.end()
	t.Logf("%d connects while the layout changed in %d steps: %s", n, len(steps), strings.Join(steps, ", "))
	if n < 100 || len(steps) < len(layout.Hooks)+3 {
		t.Errorf("%d connects during %d steps: too few to tell", n, len(steps))
	}
	b, s, err := counterRows(l)
	if err != nil || len(s) != len(w.fronts) || len(b) < len(s) {
		t.Errorf("counters of %d backends, %d services: %v", len(b), len(s), err)
	}
	numbers := map[uint32]bool{0: true}
	for _, h := range l.table.installed {
		for _, n := range h.numbers {
			if numbers[n] {
				t.Errorf("counter %d of %s is none or another's", n, h.frontend.Addr)
			}
			numbers[n] = true
		}
	}
	w.checkRecords(t, l)
}

// checkCounts checks that what was counted before the upgrade still counts.
func (w *oldWorld) checkCounts(t *testing.T, l *LB) {
	t.Helper()
	for i, f := range w.fronts {
		var want layout.FrontendCounter
		for cpu := range ebpf.MustPossibleCPU() {
			c := countedBefore(i, cpu)
			want.Connects, want.Refused = want.Connects+c.Connects, want.Refused+c.Refused
		}
		if got := countsOf(t, l, f.Addr); got.refused != want.Refused || got.connects < want.Connects {
			t.Errorf("%s: %d connects, %d refused; want at least %d, and %d", f.Addr, got.connects, got.refused, want.Connects, want.Refused)
		}
	}
}

// checkOptedOut checks that a pod that opted out before the upgrade is not served, until it opts in.
func checkOptedOut(t *testing.T, l *LB, pod string, vip netip.AddrPort) {
	t.Helper()
	for _, opted := range []bool{true, false} {
		in(t, pod, func() {
			if got := served(t, families[0], vip); got == opted {
				t.Errorf("opted out %v, served %v", opted, got)
			}
		})
		if err := l.SetOptOut(nil); err != nil {
			t.Fatal(err)
		}
	}
}

// change gives the frontends that are under load other backends.
func (w *oldWorld) change(t *testing.T, l *LB) {
	t.Helper()
	for i := range w.storms {
		w.fronts = slices.DeleteFunc(w.fronts, func(f datapath.Frontend) bool { return f.Addr == w.storms[i].vip })
		w.fronts = append(w.fronts, w.storms[i].next())
	}
	if err := problem.Strict(l.Reconcile(w.fronts, true)); err != nil {
		t.Fatal(err)
	}
	for _, c := range w.storms {
		c.applied.Store(c.wanted.Load())
	}
}

// checkRecords checks that every conversation has a record, and closes all, of which then nothing is left. What sends
// without connect() can have two: one of each layout's programs.
func (w *oldWorld) checkRecords(t testing.TB, l *LB) {
	t.Helper()
	loose := 0
	for _, v := range w.talks {
		if !v.connected {
			loose++
		}
	}
	wantRecords(t, l, len(w.talks), len(w.talks)+loose)
	for _, v := range w.talks {
		v.c.close()
	}
	noRecords(t, l)
}

func checkFronts(t testing.TB, l *LB, want []datapath.Frontend) {
	t.Helper()
	want = slices.SortedFunc(slices.Values(want), func(a, b datapath.Frontend) int { return a.Addr.Compare(b.Addr) })
	for i, f := range want {
		want[i], _ = normal(f)
	}
	got, err := l.Frontends()
	if err != nil || !slices.EqualFunc(got, want, datapath.Frontend.Equal) {
		t.Errorf("holds\n%v, %v; want\n%v", got, err, want)
	}
}

// killEnv tells a test process to open a balancer and die by its own kill -9 after the n-th step.
const killEnv = "STRAIT_TEST_KILL_AFTER"

// TestKilledUpgrade is run by TestUpgradeKilledAnywhere.
func TestKilledUpgrade(t *testing.T) {
	spec := os.Getenv(killEnv)
	if spec == "" {
		return // a process of TestUpgradeKilledAnywhere, and else nothing
	}
	var after int
	var cfg Config
	if _, err := fmt.Sscan(spec, &after, &cfg.Pins, &cfg.Cgroup, &cfg.MaxFrontends, &cfg.MaxBackends, &cfg.MaxSockets); err != nil {
		t.Fatal(err)
	}
	cfg.AllowVirtualRoot, cfg.upgrades = true, &fromOlder
	n := 0
	cfg.step = func(step string) {
		if n++; n == after {
			fmt.Println("killed after: " + step)
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	}
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	fmt.Println("upgraded whole")
}

// TestUpgradeKilledAnywhere: an upgrade that is killed after any of its steps leaves something that works, and
// the next Open finishes it.
func TestUpgradeKilledAnywhere(t *testing.T) {
	if !insideParallel(t) {
		return
	}
	root := config(t)
	root.upgrades = &fromOlder
	connects, whole := int64(0), false
	for after := 1; !whole && after < 40; after++ {
		if after > 2 && after < 10 {
			continue // one map more or less that is filled and in no use yet
		}
		if testing.Short() && after%5 != 1 {
			continue // a few places instead of all
		}
		cfg := root
		cfg.Pins = filepath.Join(root.Pins, fmt.Sprint(after))
		if err := os.MkdirAll(root.Pins, 0o700); err != nil {
			t.Fatal(err)
		}
		w := newOldWorld(t, cfg)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledUpgrade$")
		cmd.Env = append(os.Environ(), killEnv+"="+fmt.Sprint(after, " ", cfg.Pins, " ", cfg.Cgroup, " ", cfg.MaxFrontends, cfg.MaxBackends, cfg.MaxSockets))
		out, err := cmd.CombinedOutput()
		whole = bytes.Contains(out, []byte("upgraded whole"))
		if !whole && !bytes.Contains(out, []byte("killed after")) {
			t.Fatalf("step %d: %v: %s", after, err, out)
		}
		step := strings.SplitN(string(out), "\n", 2)[0]
		w.talk(t, step)
		l, err := Open(cfg)
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		w.talk(t, step+", opened again")
		checkFronts(t, l, w.fronts)
		if got := entries(t, cfg.Pins); slices.Contains(got, layout.Dir(olderNumber)) || slices.Contains(got, filling) {
			t.Errorf("%s: pins hold %v", step, got)
		}
		connects += w.end()
		if err := errors.Join(l.Close(), CleanUp(cfg)); err != nil {
			t.Fatal(err)
		}
	}
	if !whole {
		t.Error("the upgrade never came to its end")
	}
	t.Logf("%d connects", connects)
	if connects < int64(testutil.Rounds(1000, 100)) { // thousands in each, on an idle machine
		t.Error("too few to tell")
	}
}
