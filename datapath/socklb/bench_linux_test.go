package socklb

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
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
	n := 0
	for b.Loop() {
		n++
		bs := slices.Clone(want[77].Backends)
		bs[9].Port = uint16(100 + n%1000)
		want[77].Backends = bs
		reconcile(b, l, want...)
	}
	b.ReportMetric(load.Seconds(), "load-100k-s")
}
