package socklb

import (
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-mcpu=v3 -O2 -g -Wall -Wextra -Werror -fno-strict-aliasing" torn ../../bpf/torn.bpf.c -- -I../../bpf/include

const tornFrontends = 300

// tornFrontend has backends that tell whose they are; version changes their weights, and with them every slot.
func tornFrontend(n, version int) datapath.Frontend {
	high, low := byte(n>>8), byte(n)
	f := datapath.Frontend{Addr: l4.New(netip.AddrFrom4([4]byte{10, 200, high, low}), 80, l4.UDP)}
	for i := range 1 + n%3 {
		b := datapath.Backend{IP: netip.AddrFrom4([4]byte{127, high, low, byte(i)}), Port: uint16(1000 + n), Weight: uint32(1 + version + i)}
		f.Backends = append(f.Backends, b)
	}
	return f
}

// TestTornReads: a program that looks up frontends while they change more than 100,000 times a second, and
// come and go, never reads a backend of another frontend. The check is made in the kernel.
func TestTornReads(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	cfg.MaxFrontends, cfg.MaxBackends = 0, 1<<16
	l := opened(t, cfg)
	spec, err := loadTorn()
	if err != nil {
		t.Fatal(err)
	}
	if err := spec.Variables[tornVarFrontends].Set(uint32(tornFrontends)); err != nil {
		t.Fatal(err)
	}
	same := map[string]*ebpf.Map{tornMapServices: l.maps.Services, tornMapSets: l.maps.Sets, tornMapBackends: l.maps.Backends}
	for name, m := range same {
		spec.Maps[name].MaxEntries = m.MaxEntries()
	}
	var o tornObjects
	err = spec.LoadAndAssign(&o, &ebpf.CollectionOptions{MapReplacements: same})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()

	// What this machine does of each alone tells what is enough of both at once, on an emulated processor too.
	const alone, together = 500 * time.Millisecond, 4 * time.Second
	calm := whileChurning(t, l.table, func() { time.Sleep(alone) })
	quiet := readTorn(t, &o, alone)
	var seen tornTally
	updates := whileChurning(t, l.table, func() { seen = readTorn(t, &o, together) })
	t.Logf("%d look-ups, of which %d found a backend, during %d updates (%.0f a second): %d torn; in %v alone %d found one, and %d updates",
		seen.Runs, seen.Hits, updates, float64(updates)/together.Seconds(), seen.Torn, alone, quiet.Hits, calm)
	if seen.Torn != 0 {
		t.Errorf("%d of %d reads are of another frontend", seen.Torn, seen.Hits)
	}
	enough := func(got, fast, alone int) bool { // a twentieth of what is done alone, and every frontend ten times
		return got >= max(10*tornFrontends, min(fast, alone*8/20))
	}
	if !enough(int(seen.Hits), 100_000, int(quiet.Hits)) || !enough(updates, 20_000, calm) {
		t.Error("too few to tell")
	}
}

// readTorn runs the program for some time and returns what it saw meanwhile.
func readTorn(t *testing.T, o *tornObjects, length time.Duration) tornTally {
	t.Helper()
	tally := func() (now tornTally) {
		t.Helper()
		if err := o.Tallies.Lookup(uint32(0), &now); err != nil {
			t.Fatal(err)
		}
		return now
	}
	before := tally()
	for start := time.Now(); time.Since(start) < length; { // few at a time: what is retired waits for a run to end
		if _, err := o.Torn.Run(&ebpf.RunOptions{Data: make([]byte, 64), Repeat: 200}); err != nil {
			t.Fatal(err)
		}
	}
	after := tally()
	return tornTally{Runs: after.Runs - before.Runs, Hits: after.Hits - before.Hits, Torn: after.Torn - before.Torn}
}

// whileChurning changes the table while fn runs, and returns how many updates that were.
func whileChurning(t *testing.T, table *table, fn func()) (updates int) {
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() { updates = churnTorn(t, table, stop) })
	defer wg.Wait() // fn may end the test
	defer close(stop)
	fn()
	return
}

// churnTorn flips all frontends in turn, and now and then removes one and adds it again.
func churnTorn(t *testing.T, table *table, stop chan struct{}) (updates int) {
	var versions [6][tornFrontends]datapath.Frontend
	for v := range versions {
		for n := range versions[v] {
			f, err := normal(tornFrontend(n, v))
			if err != nil {
				t.Error(err)
				return 0
			}
			versions[v][n] = f
		}
	}
	for {
		select {
		case <-stop:
			return updates
		default:
		}
		for n := range tornFrontends {
			f := versions[(updates/tornFrontends+n)%len(versions)][n] // another one each time
			if updates%20_000 == 0 {
				if err := table.remove(f.Addr); err != nil {
					t.Error(err)
				}
			}
			err := table.put(f)
			if errors.Is(err, errFull) {
				if err = table.settle(); err == nil {
					err = table.put(f)
				}
			}
			if err != nil {
				t.Error(err)
				return updates
			}
			updates++
		}
	}
}
