package socklb

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// daemonEnv tells a test process to be a daemon: to open a balancer and change it without end.
const daemonEnv = "STRAIT_TEST_DAEMON"

// TestDaemon is run by TestKill.
func TestDaemon(t *testing.T) {
	spec := os.Getenv(daemonEnv)
	if spec == "" {
		return // a process of TestKill, and else nothing
	}
	var cfg Config
	var list string
	if _, err := fmt.Sscan(spec, &cfg.Pins, &cfg.Cgroup, &cfg.MaxFrontends, &cfg.MaxBackends, &cfg.MaxSockets, &list); err != nil {
		t.Fatal(err)
	}
	cfg.AllowVirtualRoot = true
	fmt.Println("opening")
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	full := 0
	for n := 0; ; n++ {
		var want []datapath.Frontend
		for front := range strings.SplitSeq(list, ";") {
			want = append(want, anySubset(front))
		}
		want = append(want, datapath.Frontend{Addr: l4.New(want[0].Addr.IP, uint16(1000+n%5), l4.TCP), AffinitySeconds: uint32(n % 2), Backends: want[0].Backends})
		err := problem.Strict(l.Reconcile(want, true))
		if err != nil && !strings.Contains(err.Error(), "no room") {
			t.Fatal(err)
		}
		if err != nil {
			full++
		}
		if n == 0 || full == 1 {
			fmt.Printf("changing, full %d times\n", full)
		}
	}
}

// anySubset reads "VIP,POD,POD…": some of the pods, with some weights; at least one.
func anySubset(front string) datapath.Frontend {
	parts := strings.Split(front, ",")
	f := datapath.Frontend{Addr: addr(parts[0])}
	pods := parts[1:]
	rand.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	for _, p := range pods[:1+rand.IntN(len(pods))] {
		ap := netip.MustParseAddrPort(p)
		f.Backends = append(f.Backends, datapath.Backend{IP: ap.Addr(), Port: ap.Port(), Weight: 1 + rand.Uint32N(3)})
	}
	f.AffinitySeconds = rand.Uint32N(2) * 100
	return f
}

// daemon is a process that changes the balancer until it is killed.
type daemon struct {
	cmd *exec.Cmd
	out string // a file
}

func newDaemon(t testing.TB, cfg Config, fronts []string) *daemon {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "daemon")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDaemon$")
	cmd.Env = append(os.Environ(), daemonEnv+"="+fmt.Sprintf("%s %s %d %d %d %s", cfg.Pins, cfg.Cgroup, cfg.MaxFrontends, cfg.MaxBackends, cfg.MaxSockets, strings.Join(fronts, ";")))
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &daemon{cmd, out.Name()}
}

func (d *daemon) output() string {
	b, err := os.ReadFile(d.out)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// waitFor waits until the daemon prints something, or for a minute: an emulated processor opens in ten seconds.
func (d *daemon) waitFor(text string) {
	for deadline := time.Now().Add(time.Minute); !strings.Contains(d.output(), text) && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
}

func (d *daemon) kill(t testing.TB) {
	t.Helper()
	err := d.cmd.Process.Signal(unix.SIGKILL)
	_ = d.cmd.Wait() // killed, which is an error
	if err != nil {
		t.Errorf("the daemon had ended by itself: %v: %s", err, d.output())
	}
}

// TestKill: a daemon that changes everything without pause is killed with -9 again and again, some times
// with full maps, and its frontends are changed while it is down. No connect fails or reaches another
// frontend's backend, and no conversation breaks or shows another peer.
func TestKill(t *testing.T) {
	if !insideParallel(t) {
		return
	}
	cfg := config(t)
	var fronts []string
	vips := map[l4.Proto]map[string]netip.AddrPort{l4.TCP: {}, l4.UDP: {}}
	own := map[string]map[string]bool{}
	for i, f := range families {
		for proto, base := range map[l4.Proto]uint16{l4.TCP: 80, l4.UDP: 80} {
			at := l4.New(f.vip, base+uint16(i), proto)
			vips[proto][f.name] = netip.AddrPortFrom(at.IP, at.Port)
			own[at.String()] = map[string]bool{}
			front := at.String()
			for range 6 {
				pod := echo(t, proto, netip.AddrPortFrom(f.pod, 0)).String()
				front += "," + pod
				own[at.String()][pod] = true
			}
			fronts = append(fronts, front)
		}
	}
	cfg.MaxBackends = 28 // less than all that may be wanted, and their next sets: often full
	l := opened(t, cfg)
	for _, f := range fronts {
		start := anySubset(f)
		start.Backends = start.Backends[:1]
		if err := problem.Strict(l.Reconcile([]datapath.Frontend{start}, false)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	talks := converse(t, vips)
	var stop atomic.Bool
	var wg sync.WaitGroup
	var connects atomic.Int64
	for _, f := range families {
		vip := l4.New(vips[l4.TCP][f.name].Addr(), vips[l4.TCP][f.name].Port(), l4.TCP)
		wg.Go(func() { connects.Add(stormOn(t, f, vip, own[vip.String()], &stop)) })
	}
	changing, full := 0, 0
	kills := testutil.Rounds(20, 4)
	for n := range kills {
		d := newDaemon(t, cfg, fronts)
		switch n % 4 {
		case 0: // somewhere in Open, as a rule
			d.waitFor("opening")
			time.Sleep(rand.N(40 * time.Millisecond))
		case 1, 2:
			d.waitFor("changing")
			time.Sleep(rand.N(20 * time.Millisecond))
		default:
			d.waitFor("full 1 times")
		}
		d.kill(t)
		out := d.output()
		if strings.Contains(out, "changing") {
			changing++
		}
		if strings.Contains(out, "full 1 times") {
			full++
		}
		for _, v := range talks {
			v.goesOn(t, fmt.Sprintf("after kill %d", n))
		}
		rand.Shuffle(len(fronts), func(i, j int) { fronts[i], fronts[j] = fronts[j], fronts[i] })
	}
	stop.Store(true)
	wg.Wait()
	last, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	got, err := last.Frontends()
	if err != nil || len(got) < len(fronts) {
		t.Errorf("holds %v, %v", got, err)
	}
	t.Logf("%d connects during %d kills; %d daemons had come to change something, %d of them met full maps", connects.Load(), kills, changing, full)
	if connects.Load() < int64(testutil.Rounds(1000, 100)) || changing == 0 || full == 0 {
		t.Error("too few to tell")
	}
}

// stormOn connects until stopped: each answer must come from a backend of the frontend's own.
func stormOn(t testing.TB, f family, vip l4.Addr, own map[string]bool, stop *atomic.Bool) (n int64) {
	for ; !stop.Load(); n++ {
		c := newClient(t, f, unix.SOCK_STREAM)
		err := errors.Join(unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}), c.connect(netip.AddrPortFrom(vip.IP, vip.Port)))
		var text string
		if err == nil {
			if err = c.write(); err == nil {
				text, _, err = c.receive()
			}
		}
		c.close()
		if err != nil || !own[text] {
			t.Errorf("connect to %s: answer %q, %v", vip, text, err)
			return n
		}
		breathe()
	}
	return n
}
