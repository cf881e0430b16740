package socklb

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
)

// contest has two balancers on one cgroup, with the same frontends and different pods behind them.
// The rival attaches its programs as other projects do: without a place, and so behind those that
// are there.
type contest struct {
	cfg, rival Config
	ours       []datapath.Frontend
	theirs     []datapath.Frontend
	answers    map[l4.Addr]netip.AddrPort // of our pods
}

func newContest(t *testing.T) *contest {
	t.Helper()
	c := &contest{cfg: config(t), answers: map[l4.Addr]netip.AddrPort{}}
	c.rival = c.cfg
	c.rival.Pins = filepath.Join(filepath.Dir(c.cfg.Pins), "rival")
	for i, f := range families {
		for _, proto := range []l4.Proto{l4.TCP, l4.UDP} {
			vip := l4.New(f.vip, uint16(80+i), proto)
			pod, other := serve(t, proto, netip.AddrPortFrom(f.pod, 0)), serve(t, proto, netip.AddrPortFrom(f.pod, 0))
			c.answers[vip] = pod
			c.ours = append(c.ours, datapath.Frontend{Addr: vip, Backends: one(pod)})
			c.theirs = append(c.theirs, datapath.Frontend{Addr: vip, Backends: one(other)})
		}
	}
	return c
}

// enter attaches the rival until the test ends: an old version of this balancer, as a stranger with
// pins of its own.
func (c *contest) enter(t *testing.T) {
	openOlder(t, c.rival, c.theirs)
	t.Cleanup(func() { c.leave(t) })
}

// leave detaches the rival.
func (c *contest) leave(t *testing.T) {
	t.Helper()
	if err := CleanUp(c.rival); err != nil {
		t.Error(err)
	}
}

// check asks each frontend in each way: our pods answer, and the socket sees the frontend.
func (c *contest) check(t *testing.T, when string) {
	t.Helper()
	for i, f := range families {
		for _, w := range ways {
			vip := l4.New(f.vip, uint16(80+i), w.proto)
			to, pod := netip.AddrPortFrom(vip.IP, vip.Port), c.answers[vip]
			t.Run(fmt.Sprintf("%s/%s/%s", when, f.name, w.name), func(t *testing.T) {
				if w.name == "UDP unconnected" {
					testUnconnected(t, f, to, pod)
				} else {
					testConnected(t, f, w.kind, to, pod)
				}
			})
		}
	}
}

// needsFirst skips a test on a kernel that has no places.
func needsFirst(t *testing.T) {
	t.Helper()
	fs, err := probe()
	if err != nil {
		t.Fatal(err)
	}
	if !has(fs, featureFirst) {
		t.Skip("this kernel cannot attach in front of others; TestBelow tests what happens instead")
	}
}

// TestFirst: whichever program is attached first or last, our frontends lead to our pods.
func TestFirst(t *testing.T) {
	if !inside(t) {
		return
	}
	needsFirst(t)
	for name, begin := range map[string]func(*testing.T, *contest) *LB{
		"the rival is first": func(t *testing.T, c *contest) *LB {
			c.enter(t)
			return opened(t, c.cfg)
		},
		"we are first": func(t *testing.T, c *contest) *LB {
			l := opened(t, c.cfg)
			c.enter(t)
			return l
		},
		"upgrade from links without a place": func(t *testing.T, c *contest) *LB {
			c.enter(t)
			openOlder(t, c.cfg, c.ours)
			c.cfg.upgrades = &fromOlder
			return opened(t, c.cfg)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newContest(t)
			l := begin(t, c)
			reconcile(t, l, c.ours...)
			c.check(t, "attached")
			if err := detachAll(filepath.Join(c.cfg.Pins, layout.LinksDir)); err != nil {
				t.Fatal(err)
			}
			if changed, err := l.Mend(); err != nil || len(changed) != 2*len(layout.Hooks) {
				t.Fatalf("mended %v, %v", changed, err)
			}
			c.check(t, "mended")
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			l = opened(t, c.cfg)
			c.check(t, "opened again")
			checkOrder(t, l)
		})
	}
}

// checkOrder checks that we choose before others do, each hook has one program of ours, and the
// rival's is there.
func checkOrder(t *testing.T, l *LB) {
	t.Helper()
	ours, err := inspect.Programs(l.Pins())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range layout.Hooks {
		all, err := inspect.Attached(h, l.Cgroup(), 0)
		if err != nil || len(all) != 2 || h.Forward && !ours[all[0]] {
			t.Errorf("%s: programs %v, ours are %v, %v", h.Name, all, ours, err)
		}
	}
	found, err := inspect.Foreign(l.Pins(), l.Cgroup())
	for _, f := range found {
		if f.Chooses() && f.Order != datapath.After {
			t.Errorf("%+v", f)
		}
	}
	if err != nil || len(found) != len(layout.Hooks)-1 {
		t.Errorf("foreign programs %v, %v", found, err)
	}
}

// TestFirstUnderLoad: while links behind a stranger's give way to links in front of it, no connect
// fails and no conversation ends.
func TestFirstUnderLoad(t *testing.T) {
	if !inside(t) {
		return
	}
	needsFirst(t)
	cfg := config(t)
	for _, h := range layout.Hooks {
		if h.Attach != ebpf.AttachCgroupInetSockRelease {
			attachNeighbour(t, cfg.Cgroup, h.Attach, 1)
		}
	}
	cfg.upgrades = &fromOlder
	w := newOldWorld(t, cfg)
	w.talk(t, "before")
	cfg.step = func(s string) { w.talk(t, s) }
	l := opened(t, cfg)
	w.talk(t, "after")
	checkFronts(t, l, w.fronts)
	if n := w.end(); n < 100 {
		t.Errorf("%d connects: too few to tell", n)
	}
	ours, err := inspect.Programs(cfg.Pins)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range layout.Hooks {
		all, err := inspect.Attached(h, cfg.Cgroup, 0)
		if err != nil || h.Forward && !ours[all[0]] {
			t.Errorf("%s: programs %v, ours are %v, %v", h.Name, all, ours, err)
		}
	}
}

// TestFirstIsProbed: the answer to the probe agrees with attaching.
func TestFirstIsProbed(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	h := layout.Hooks[len(layout.Hooks)-1]
	p, err := ebpf.NewProgram(smallest(ebpf.CGroupSockAddr, h.Attach))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	cg, err := os.Stat(cfg.Cgroup)
	if err != nil || !cg.IsDir() {
		t.Fatal(cg, err)
	}
	to := target{first: true}
	to.Path = cfg.Cgroup
	l, err := attach(h, p, to)
	if err == nil {
		defer l.Close()
	}
	if asked := haveFirst(); (asked == nil) != (err == nil) || err != nil && !errors.Is(err, unix.EINVAL) {
		t.Errorf("asked: %v, attached: %v", asked, err)
	}
}
