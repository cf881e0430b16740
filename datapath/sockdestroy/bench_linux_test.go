package sockdestroy

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkPass is one call of Destroy, without the grace period that it waits for and without reading the
// maps: with N records of which none is stale, and with N sockets to destroy in one of two pods.
func BenchmarkPass(b *testing.B) {
	if !inside(b) {
		return
	}
	it, err := newIterator()
	if err != nil {
		b.Fatal(err)
	}
	m := newMachine(b, nil, Policy{})
	m.cfg.Log = New(Config{}).cfg.Log
	m.grace = func() {}
	newPod(b)
	p := newPod(b)
	b.Run("grace", func(b *testing.B) {
		for b.Loop() {
			awaitHooks()
		}
	})
	for _, n := range []int{0, 10, 10_000} {
		b.Run(fmt.Sprintf("fresh=%d", n), func(b *testing.B) {
			want := m.set(old)
			fds := p.many(n)
			m.remember()
			for b.Loop() {
				m.mustDestroy(b, want, 0)
			}
			p.closeAll(fds)
		})
		for name, forced := range map[string]method{"iterator": it, "sock_diag": newDiag()} {
			if n == 0 {
				continue
			}
			b.Run(fmt.Sprintf("stale=%d/%s", n, name), func(b *testing.B) {
				m.method = forced
				for b.Loop() {
					b.StopTimer()
					m.set(old)
					fds := p.many(n)
					m.remember()
					want := m.set(new_)
					b.StartTimer()
					m.mustDestroy(b, want, n)
					b.StopTimer()
					p.closeAll(fds)
					b.StartTimer()
				}
			})
		}
	}
	m.method = it // to be closed
}

// BenchmarkLoad is what the first call that finds a stale socket costs besides.
func BenchmarkLoad(b *testing.B) {
	if !inside(b) {
		return
	}
	b.ReportAllocs()
	for b.Loop() {
		it, err := newIterator()
		if err != nil {
			b.Fatal(err)
		}
		if err := it.close(); err != nil {
			b.Fatal(err)
		}
	}
}

// remember reads the records once for all.
func (m *machine) remember() {
	records, err := m.records()
	if err != nil {
		m.t.Fatal(err)
	}
	m.cfg.Records = func() ([]Record, error) { return records, nil }
}

func (p *pod) many(n int) (fds []int) {
	p.call("Many", Call{Kind: unix.SOCK_DGRAM, Form: v4, To: v4.vip(), N: n}, &fds)
	return fds
}

func (p *pod) closeAll(fds []int) { p.call("CloseAll", fds, nil) }
