package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// The assertion relies on these addresses: frontend n is 10.96.0.n, all of its backends are
// 10.200.n.x, and sockets that dial it have the source port tornPort+n plus a multiple of
// tornFrontends. So the address that strait's program chose tells which frontend it belongs to.
const (
	tornFrontends = 64 // a power of two
	tornPort      = 20_000
	// tornDialers should exceed the number of processors, so that some dialers are interrupted in
	// the middle of a choice, for milliseconds.
	tornDialers  = 4
	tornBackends = 8
	// tornVariants is the number of sets that each frontend has in turn. Each set differs from the
	// one before in its weights. Every tornMoves-th set has different backends, which also need new
	// counters and cost more than a flip.
	tornVariants = 32
	tornMoves    = 16
	tornServices = 96
	tornNet      = 200
)

// Offsets in the kernel's struct bpf_sock_addr and struct bpf_sock (linux/bpf.h).
const (
	ctxUserIP4  = 4
	ctxSock     = 64
	sockSrcPort = 44
)

// Counters of the assertion.
const (
	tornChecked = iota
	tornWrong
	// tornKept are connects that still had the frontend's address.
	tornKept
	// tornLast is the address of the last wrong choice, in memory order, to be printed.
	tornLast
	tornCounters
)

// assertion returns a program for the cgroup above strait's, so that the kernel runs it right after
// strait's on each connect() and it sees what strait's program wrote. It counts, and allows every
// connect.
func assertion(name string, counters *ebpf.Map) *ebpf.ProgramSpec {
	at := func(n int32, label string) asm.Instructions { // R0 points to the counter
		return asm.Instructions{
			asm.StoreImm(asm.RFP, -4, int64(n), asm.Word).WithSymbol(label),
			asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
			asm.LoadMapPtr(asm.R1, counters.FD()), asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "out"),
		}
	}
	one := asm.Instructions{asm.Mov.Imm(asm.R1, 1), asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0)}
	in := asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, ctxUserIP4, asm.Word),
		asm.LoadMem(asm.R2, asm.R1, ctxSock, asm.DWord),
		asm.JEq.Imm(asm.R2, 0, "out"),
		asm.LoadMem(asm.R7, asm.R2, sockSrcPort, asm.Word),
		asm.Sub.Imm(asm.R7, tornPort),
		asm.JGE.Imm(asm.R7, tornDialers*tornFrontends, "out"), // not a dialer's socket
		asm.And.Imm(asm.R7, tornFrontends-1),
		// In memory order the address must be 10, tornNet, n, x. This computes it without x.
		asm.LSh.Imm(asm.R7, 16), asm.Or.Imm(asm.R7, 10|tornNet<<8),
		asm.Mov.Reg(asm.R8, asm.R6), asm.And.Imm(asm.R6, 0x00ffffff),
	}
	in = append(in, at(tornChecked, "checked")...)
	in = append(in, one...)
	in = append(in, asm.JEq.Reg(asm.R6, asm.R7, "out"))
	in = append(in, asm.And.Imm(asm.R6, 0xffff), asm.JNE.Imm(asm.R6, 10|tornServices<<8, "wrong"))
	in = append(in, at(tornKept, "kept")...)
	in = append(in, one...)
	in = append(in, asm.Ja.Label("out"))
	in = append(in, at(tornWrong, "wrong")...)
	in = append(in, one...)
	in = append(in, at(tornLast, "last")...)
	in = append(in, asm.StoreMem(asm.R0, 0, asm.R8, asm.DWord))
	in = append(in, asm.Mov.Imm(asm.R0, 1).WithSymbol("out"), asm.Return())
	return &ebpf.ProgramSpec{
		Name: name, Type: ebpf.CGroupSockAddr, AttachType: ebpf.AttachCGroupInet4Connect, License: "GPL",
		Instructions: in,
	}
}

// torn is the storm over one balancer.
type torn struct {
	tornSide
	counters *ebpf.Map
	below    string
	fds      []int
	variants [tornVariants][]datapath.Frontend
	updates  int64
	took     time.Duration
	// checked, wrong and kept are what the assertion counted. refused is the number of connects
	// that failed because the balancer refused them.
	checked, wrong, kept uint64
	refused              atomic.Uint64
}

// measureTorn connects UDP sockets without pause, each to its own frontend, while all sets change:
// first with one dialer, as fast as possible, then with more than there are processors.
func measureTorn(b *bench) error {
	return b.assert("asserted", []tornSide{{"strait", false, tornStrait, reportTornStrait}})
}

// assert does this to each of the sides, below a cgroup with the given name.
func (b *bench) assert(name string, sides []tornSide) error {
	above := filepath.Join(b.home, name)
	if err := os.Mkdir(above, 0o755); err != nil {
		return err
	}
	counters, err := ebpf.NewMap(&ebpf.MapSpec{Name: "bench_torn", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: tornCounters})
	if err != nil {
		return err
	}
	if err := b.attach(above, assertion(name, counters)); err != nil {
		return err
	}
	variants := tornWorld()
	for _, s := range sides {
		t := &torn{tornSide: s, below: filepath.Join(above, s.name), counters: counters, variants: variants}
		if err := t.run(b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// run storms over the balancer twice, and records the results.
func (t *torn) run(b *bench) error {
	if err := os.Mkdir(t.below, 0o755); err != nil {
		return err
	}
	if err := b.in(t.below, t.openSockets); err != nil {
		return err
	}
	if err := t.measure(b, false, 1); err != nil {
		return err
	}
	fast := float64(t.updates) / t.took.Seconds()
	if err := t.measure(b, true, tornDialers); err != nil {
		return err
	}
	return errors.Join(closeAll(t.fds), t.report(b, t, fast))
}

func tornWorld() (out [tornVariants][]datapath.Frontend) {
	for v := range out {
		for n := range tornFrontends {
			f := datapath.Frontend{Addr: l4.New(netip.AddrFrom4([4]byte{10, tornServices, 0, byte(n)}), servicePort, l4.UDP)}
			for i := range tornBackends {
				ip := netip.AddrFrom4([4]byte{10, tornNet, byte(n), byte(v/tornMoves*tornBackends + i)})
				f.Backends = append(f.Backends, datapath.Backend{IP: ip, Port: podPort, Weight: uint32(1 + (i+v)%tornBackends)})
			}
			out[v] = append(out[v], f)
		}
	}
	return out
}

// openSockets opens a socket for each dialer and frontend.
func (t *torn) openSockets() (err error) {
	if t.fds, err = sockets(tornDialers*tornFrontends, unix.SOCK_DGRAM); err != nil {
		return err
	}
	for n, fd := range t.fds {
		if err := unix.Bind(fd, &unix.SockaddrInet4{Port: tornPort + n}); err != nil {
			return err
		}
	}
	return nil
}

func (t *torn) dial(socket, frontend int) error {
	a := t.variants[0][frontend].Addr
	err := connect(t.fds[socket], raw(netip.AddrPortFrom(a.IP, a.Port)))
	if t.refuses && (errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENOMEM)) { // of Cilium's programs
		t.refused.Add(1)
		return nil
	}
	return err
}

func (t *torn) count(n uint32) (value uint64, err error) {
	return value, t.counters.Lookup(n, &value)
}

// control checks that the assertion detects a wrong choice: one socket dials another socket's
// frontend.
func (t *torn) control() error {
	if err := errors.Join(t.dial(0, 0), t.dial(1, 1), t.dial(0, 1)); err != nil {
		return err
	}
	checked, err1 := t.count(tornChecked)
	wrong, err2 := t.count(tornWrong)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if checked != 3 || wrong != 1 {
		return fmt.Errorf("test the assertion: it checked %d connects and found %d wrong, want 3 and 1", checked, wrong)
	}
	return t.zero()
}

func (t *torn) zero() error {
	var errs []error
	for n := range uint32(tornCounters) {
		errs = append(errs, t.counters.Put(n, uint64(0)))
	}
	return errors.Join(errs...)
}

// measure opens a balancer, runs the dialers, and adds to the counts.
func (t *torn) measure(b *bench, tight bool, dialers int) error {
	update, done, err := t.open(b, t.below, tight)
	if err != nil {
		return err
	}
	if err := update(t.variants[0]); err != nil {
		return err
	}
	if err := t.control(); err != nil {
		return err
	}
	if err := t.storm(update, dialers, b.size.torn/2); err != nil {
		return err
	}
	return errors.Join(t.add(), t.zero(), done())
}

// add adds the assertion's counts to the results.
func (t *torn) add() error {
	checked, err1 := t.count(tornChecked)
	wrong, err2 := t.count(tornWrong)
	kept, err3 := t.count(tornKept)
	last, err4 := t.count(tornLast)
	if wrong > 0 {
		fmt.Fprintf(os.Stderr, "bench: %s: torn reads: %d of %d; the last one chose %v\n", t.name, wrong, checked,
			netip.AddrFrom4([4]byte{byte(last), byte(last >> 8), byte(last >> 16), byte(last >> 24)}))
	}
	t.checked += checked
	t.wrong += wrong
	t.kept += kept
	return errors.Join(err1, err2, err3, err4)
}

// storm dials and updates at the same time, for the given length.
func (t *torn) storm(update func([]datapath.Frontend) error, dialers int, length time.Duration) error {
	var stop atomic.Bool
	var wg sync.WaitGroup
	errs := make([]error, dialers+1)
	t.updates = 0
	start := time.Now()
	wg.Go(func() {
		for n := 1; !stop.Load() && errs[dialers] == nil; n++ {
			errs[dialers] = update(t.variants[n%tornVariants])
			t.updates += tornFrontends
		}
	})
	for d := range dialers {
		wg.Go(func() {
			for errs[d] == nil && !stop.Load() {
				for n := range tornFrontends {
					errs[d] = errors.Join(errs[d], t.dial(d*tornFrontends+n, n))
				}
			}
		})
	}
	time.Sleep(length)
	stop.Store(true)
	wg.Wait()
	t.took = time.Since(start)
	return errors.Join(errs...)
}
