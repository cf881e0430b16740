package socklb

import (
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
)

// BenchmarkMend looks at 100,000 backends of 10,000 frontends, all as wanted. It also shows how long a turn takes that
// compares them all and changes none.
func BenchmarkMend(b *testing.B) {
	if !inside(b) {
		return
	}
	cfg := config(b)
	cfg.MaxFrontends, cfg.MaxBackends = 1<<15, 1<<18
	l := opened(b, cfg)
	var want []datapath.Frontend
	for i := range 10_000 {
		want = append(want, datapath.Frontend{Addr: l4.New(netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}), 80, l4.TCP), Backends: manyBackends(10)})
	}
	reconcile(b, l, want...)
	began := time.Now()
	reconcile(b, l, want...)
	turn := time.Since(began)
	for b.Loop() {
		if changed, err := l.Mend(); err != nil || changed != nil {
			b.Fatal(changed, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(turn), "turns/op")
}

// What is damaged is found and put back at once, and the connection that needs it gets through: the daemon's test of
// all faults is test/faults.
func TestMend(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	l := opened(t, cfg)
	pod := serve(t, l4.TCP, netip.MustParseAddrPort("127.0.0.2:0"))
	vip := l4.New(families[0].vip, 80, l4.TCP)
	reconcile(t, l, datapath.Frontend{Addr: vip, Backends: one(pod)})
	if changed, err := l.Mend(); err != nil || changed != nil {
		t.Fatalf("nothing is damaged: %v, %v", changed, err)
	}
	if err := detachAll(cfg.Pins + "/links"); err != nil {
		t.Fatal(err)
	}
	if err := l.maps.Services.Delete(layout.KeyOf(vip)); err != nil {
		t.Fatal(err)
	}
	changed, err := l.Mend()
	if err != nil || len(changed) != 2*len(layout.Hooks)+1 {
		t.Errorf("%d links, their pins and a service: %v, %v", len(layout.Hooks), changed, err)
	}
	if got, err := ask(t, families[0], vip); err != nil || got != pod.String() {
		t.Errorf("after Mend: %q, %v", got, err)
	}
	if changed, err := l.Mend(); err != nil || changed != nil {
		t.Errorf("again: %v, %v", changed, err)
	}
}
