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

// tornFrontends are few, so that a program often meets the one that changes just now.
const tornFrontends = 16

// tornFrontend has one to three backends that show whose they are; version changes their number and weights.
func tornFrontend(n, version int) datapath.Frontend {
	f := datapath.Frontend{Addr: l4.New(netip.AddrFrom4([4]byte{10, 200, 0, byte(n)}), 80, l4.UDP)}
	for i := range 1 + (n+version)%3 {
		b := datapath.Backend{IP: netip.AddrFrom4([4]byte{127, 0, byte(n), byte(i)}), Port: uint16(1000 + n), Weight: uint32(1 + version + i)}
		f.Backends = append(f.Backends, b)
	}
	return f
}

// TestTornReads: a program that looks up frontends while they change, and come and go, never reads a backend
// of another frontend. The check is made in the kernel.
func TestTornReads(t *testing.T) {
	for name, c := range map[string]struct {
		frontends, backends uint32
		removeEvery         int
	}{
		// Flips as fast as can be: finds a set of which only a half is written.
		"room for all": {1 << 10, 1 << 16, 20_000},
		// What is retired is used again as soon as it may be: finds what does not wait for running programs.
		"tight": {tornFrontends + 2, 3 * tornFrontends, 50},
	} {
		t.Run(name, func(t *testing.T) {
			if inside(t) {
				cfg := config(t)
				cfg.MaxFrontends, cfg.MaxBackends = c.frontends, c.backends
				testTornReads(t, opened(t, cfg), c.removeEvery)
			}
		})
	}
}

func testTornReads(t *testing.T, l *LB, removeEvery int) {
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
	const alone, together = 500 * time.Millisecond, 3 * time.Second
	calm := whileChurning(t, l.table, removeEvery, func() { time.Sleep(alone) })
	quiet := readTorn(t, &o, alone)
	var seen tornTally
	updates := whileChurning(t, l.table, removeEvery, func() { seen = readTorn(t, &o, together) })
	t.Logf("%d look-ups, of which %d found a backend, during %d updates (%.0f a second): %d torn; in %v alone %d found one, and %d updates",
		seen.Runs, seen.Hits, updates, float64(updates)/together.Seconds(), seen.Torn, alone, quiet.Hits, calm)
	if seen.Torn != 0 {
		t.Errorf("%d of %d reads are of another frontend", seen.Torn, seen.Hits)
	}
	enough := func(got, fast, alone int) bool { // a twentieth of what is done alone, and every frontend ten times
		return got >= max(10*tornFrontends, min(fast, alone*6/20))
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
func whileChurning(t *testing.T, table *table, removeEvery int, fn func()) (updates int) {
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() { updates = churnTorn(t, table, removeEvery, stop) })
	defer wg.Wait() // fn may end the test
	defer close(stop)
	fn()
	return
}

// churnTorn flips all frontends in turn, and now and then removes two and adds them again: the first takes
// what the kernel freed last, which was the second's.
func churnTorn(t *testing.T, table *table, removeEvery int, stop chan struct{}) (updates int) {
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
			if updates%removeEvery == 0 {
				next := versions[0][(n+1)%tornFrontends]
				if err := errors.Join(table.remove(f.Addr), table.remove(next.Addr)); err != nil {
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
