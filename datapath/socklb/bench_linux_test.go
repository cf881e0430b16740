package socklb

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
)

// BenchmarkConnect compares a connection through a frontend with a direct one to the same listener, in
// alternation, with 1,000 other frontends loaded; medians. The direct one goes through the hooks too, as
// on any node that strait serves.
func BenchmarkConnect(b *testing.B) {
	if !inside(b) {
		return
	}
	cfg := config(b)
	cfg.MaxFrontends, cfg.MaxBackends, cfg.MaxSockets = 0, 0, 0
	l := opened(b, cfg)
	f := families[0]
	for name, kind := range map[string]int{"TCP": unix.SOCK_STREAM, "UDP": unix.SOCK_DGRAM} {
		proto := map[string]l4.Proto{"TCP": l4.TCP, "UDP": l4.UDP}[name]
		pod := serve(b, proto, netip.AddrPortFrom(f.pod, 0))
		vip := l4.New(f.vip, 80, proto)
		want := []datapath.Frontend{{Addr: vip, Backends: one(pod)}}
		for i := range 1000 {
			want = append(want, datapath.Frontend{Addr: l4.New(f.vip, uint16(1000+i), proto), Backends: manyBackends(10)})
		}
		reconcile(b, l, want...)
		b.Run(name, func(b *testing.B) {
			var direct, through []time.Duration
			for b.Loop() {
				direct = append(direct, timeConnect(b, f, kind, pod))
				through = append(through, timeConnect(b, f, kind, netip.AddrPortFrom(vip.IP, vip.Port)))
			}
			d, v := median(direct), median(through)
			b.ReportMetric(float64(d), "direct-ns")
			b.ReportMetric(float64(v), "frontend-ns")
			b.ReportMetric(float64(v)/float64(d), "ratio")
		})
	}
}

func timeConnect(b *testing.B, f family, kind int, to netip.AddrPort) time.Duration {
	c := newClient(b, f, kind)
	defer c.close()
	if err := unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		b.Fatal(err)
	}
	sa := f.sockaddr(to)
	start := time.Now()
	err := unix.Connect(c.fd, sa)
	d := time.Since(start)
	if err != nil {
		b.Fatal(err)
	}
	return d
}

func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}

// BenchmarkReconcile: one changed endpoint among 10,000 frontends of 10; and the first load of them.
func BenchmarkReconcile(b *testing.B) {
	if !inside(b) {
		return
	}
	cfg := config(b)
	cfg.MaxFrontends, cfg.MaxBackends, cfg.MaxSockets = 0, 0, 0
	l := opened(b, cfg)
	var want []datapath.Frontend
	for i := range 10_000 {
		ip := netip.MustParseAddr(fmt.Sprintf("10.96.%d.%d", i/250, i%250+1))
		want = append(want, datapath.Frontend{Addr: l4.New(ip, 80, l4.TCP), Backends: manyBackends(10)})
	}
	start := time.Now()
	reconcile(b, l, want...)
	load := time.Since(start)
	var flips []time.Duration
	for b.Loop() {
		bs := slices.Clone(want[77].Backends)
		bs[9].Port = uint16(100 + len(flips)%1000)
		want = slices.Clone(want) // the balancer keeps the last one
		want[77].Backends = bs
		start := time.Now()
		reconcile(b, l, want...)
		flips = append(flips, time.Since(start))
	}
	b.ReportMetric(float64(median(flips)), "flip-ns")
	b.ReportMetric(load.Seconds(), "load-100k-s")
}

// BenchmarkHook is the run time of connect4 on a hot frontend by the kernel's own statistics: with and without
// session affinity, and with an opt-out configured.
func BenchmarkHook(b *testing.B) {
	if !inside(b) {
		return
	}
	f := families[0]
	vip := l4.New(f.vip, 80, l4.UDP)
	front := datapath.Frontend{Addr: vip, Backends: manyBackends(10)}
	for i := range front.Backends {
		front.Backends[i].IP = f.pod // reachable: nothing is sent to it
	}
	sticky := front
	sticky.AffinitySeconds = 100
	pod := subtree(b, "pod")
	balancer := func(b *testing.B, want datapath.Frontend, optOut ...string) Config {
		cfg := config(b)
		l := opened(b, cfg)
		reconcile(b, l, want)
		if err := l.SetOptOut(optOut); err != nil {
			b.Fatal(err)
		}
		return cfg
	}
	for _, side := range []struct {
		name string
		open func(*testing.B) Config
	}{
		{"plain", func(b *testing.B) Config { return balancer(b, front) }},
		{"optout", func(b *testing.B) Config { return balancer(b, front, pod) }},
		{"affinity", func(b *testing.B) Config { return balancer(b, sticky) }},
	} {
		b.Run(side.name, func(b *testing.B) { benchHook(b, side.open(b), f, netip.AddrPortFrom(vip.IP, vip.Port)) })
	}
}

func benchHook(b *testing.B, cfg Config, f family, vip netip.AddrPort) {
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		b.Fatal(err)
	}
	defer stats.Close()
	l, err := link.LoadPinnedLink(filepath.Join(cfg.Pins, layout.LinksDir, "connect4"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	info, err := l.Info()
	if err != nil {
		b.Fatal(err)
	}
	p, err := ebpf.NewProgramFromID(info.Program)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	c := newClient(b, f, unix.SOCK_DGRAM)
	defer c.close()
	var rounds []time.Duration
	for b.Loop() { // the median of rounds, against the machine's other work
		before, err := p.Stats()
		if err != nil {
			b.Fatal(err)
		}
		for range 1000 {
			if err := c.connect(vip); err != nil {
				b.Fatal(err)
			}
		}
		after, err := p.Stats()
		if err != nil {
			b.Fatal(err)
		}
		rounds = append(rounds, (after.Runtime-before.Runtime)/time.Duration(after.RunCount-before.RunCount))
	}
	b.ReportMetric(float64(median(rounds)), "hook-ns")
}
