package socklb

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/cgroup"
	"strait.io/strait/datapath/socklb/layout"
)

// openLayout2 makes pins as the daemon of layout 2 did, with the frontends in its maps. Layout 2 takes the homes of
// records under a spin lock, and has no sieve of opt-outs.
func openLayout2(t testing.TB, cfg Config, fronts []datapath.Frontend) {
	openOlder(t, cfg, fronts, "layout2.o", "layout-2")
}

// openLayout3 is openLayout2 for layout 3. It keeps what finds no place at home in an overflow map, and has no sieve of
// addresses.
func openLayout3(t testing.TB, cfg Config, fronts []datapath.Frontend) {
	openOlder(t, cfg, fronts, "layout3.o", "layout-3")
}

func openOlder(t testing.TB, cfg Config, fronts []datapath.Frontend, object, dir string) {
	t.Helper()
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	spec, err := ebpf.LoadCollectionSpec(filepath.Join("testdata", object))
	if err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]uint32{
		"services": cfg.MaxFrontends, "sets": cfg.MaxFrontends, "frontend_counters": cfg.MaxFrontends,
		"backends": cfg.MaxBackends, "backend_counters": cfg.MaxBackends + 1,
		"sockets": cfg.MaxSockets, "sockets_more": max(64, cfg.MaxSockets),
	} {
		spec.Maps[name].MaxEntries = size
	}
	if err := errors.Join(spec.Variables["sockets_mask"].Set(cfg.MaxSockets-1), spec.Variables["has_set_retval"].Set(uint8(0))); err != nil {
		t.Fatal(err)
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cg, err := cgroup.Open(cfg.Cgroup, true)
	if err != nil {
		t.Fatal(err)
	}
	fillLayout2(t, c.Maps, fronts)
	maps := filepath.Join(cfg.Pins, dir)
	err = errors.Join(os.MkdirAll(maps, 0o700), os.Mkdir(filepath.Join(cfg.Pins, layout.LinksDir), 0o700), pinMaps(maps, pinned(c.Maps)))
	for name := range pinned(c.Maps) {
		err = errors.Join(err, os.Symlink(filepath.Join(dir, name), filepath.Join(cfg.Pins, name)))
	}
	err = errors.Join(err, attachAll(oldPrograms(c), filepath.Join(cfg.Pins, layout.LinksDir), target{Dir: cg}, func(string) {}))
	if err != nil {
		t.Fatal(err)
	}
}

// countedBefore is what a CPU counted of the i-th frontend before the upgrade.
func countedBefore(i, cpu int) layout.FrontendCounter {
	return layout.FrontendCounter{Connects: uint64(1000 * (i + 1)), Refused: uint64(10*i + cpu + 1)}
}

func fillLayout2(t testing.TB, m map[string]*ebpf.Map, fronts []datapath.Frontend) {
	t.Helper()
	next := uint32(5)
	for i, f := range fronts {
		f, err := normal(f)
		if err != nil {
			t.Fatal(err)
		}
		index, block := uint32(3+i), extent{next, uint32(len(f.Backends))}
		numbers := make([]uint32, len(f.Backends))
		for n := range numbers {
			numbers[n] = next + uint32(n) + 1
		}
		for n, s := range slotsOf(f.Backends, numbers) {
			if err := m["backends"].Put(next+uint32(n), s); err != nil {
				t.Fatal(err)
			}
		}
		counts := make([]layout.FrontendCounter, ebpf.MustPossibleCPU())
		for cpu := range counts {
			counts[cpu] = countedBefore(i, cpu)
		}
		err = errors.Join(m["sets"].Put(index, layout.Set{Base: block.base, Count: block.count}), m["services"].Put(layout.KeyOf(f.Addr), index),
			m["frontend_counters"].Put(index, counts))
		if err != nil {
			t.Fatal(err)
		}
		next = block.end()
	}
}

// TestUpgradeLayout2: as TestUpgradeLayout, from layout 2. Old and new programs write the same records of sockets
// meanwhile: none is lost and none stays. Every map but the sieve is the same one, and opt-outs hold throughout.
func TestUpgradeLayout2(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	cfg.MaxSockets = 64 // crowded: old and new programs want the same homes
	w := newOldWorld(t, cfg, openLayout2)
	pod := subtree(t, "pod")
	optOutLayout2(t, cfg, pod)
	before := mapIDs(t, cfg.Pins, "layout-2")
	w.talk(t, "before")
	steps, locked := 0, 0
	cfg.step = func(s string) {
		steps++
		w.talk(t, s)
		if s == "attached connect6" {
			locked++
		}
	}
	l := opened(t, cfg)
	w.talk(t, "after")
	checkFronts(t, l, w.fronts)
	if got := entries(t, cfg.Pins); !slices.Contains(got, layout.Dir(layout.Number)) || slices.Contains(got, "layout-2") {
		t.Errorf("pins hold %v", got)
	}
	if locked != 2 {
		t.Errorf("programs were attached %d times: they may claim no home while old ones run", locked)
	}
	for name, id := range mapIDs(t, cfg.Pins, layout.Dir(layout.Number)) {
		old, had := before[name]
		if same := old == id; had && same == (name == layout.MapOptOutLevels) {
			t.Errorf("map %s is the old one: %v", name, same)
		}
	}
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
	for _, opted := range []bool{true, false} {
		in(t, pod, func() {
			if got := served(t, families[0], w.talks[1].vip); got == opted {
				t.Errorf("opted out %v, served %v", opted, got)
			}
		})
		if err := l.SetOptOut(nil); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d connects while the layout changed in %d steps", w.end(), steps)
	w.checkRecords(t, l)
}

// TestUpgradeLayout3: as TestUpgradeLayout, from layout 3. What its programs put into the overflow map serves its sockets
// until they are closed, and nothing is added.
func TestUpgradeLayout3(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	cfg.MaxSockets = 2 // nearly all sockets overflow
	w := newOldWorld(t, cfg, openLayout3)
	w.talk(t, "before")
	cfg.step = func(s string) { w.talk(t, s) }
	l := opened(t, cfg)
	w.talk(t, "after")
	checkFronts(t, l, w.fronts)
	if got := entries(t, cfg.Pins); !slices.Contains(got, layout.Dir(layout.Number)) || slices.Contains(got, "layout-3") {
		t.Errorf("pins hold %v", got)
	}
	t.Logf("%d connects while the layout changed", w.end())
	if _, _, older := countRecords(t, l); older == 0 {
		t.Error("no record is left of the old layout: nothing was tested")
	}
	_, _, before := countRecords(t, l)
	for _, v := range converse(t, w.vips) {
		v.goesOn(t, "a new socket")
		v.c.close()
	}
	if _, _, older := countRecords(t, l); older > before {
		t.Errorf("new sockets have %d records in the old way", older-before)
	}
	w.checkRecords(t, l)
}

// checkRecords checks that every conversation has a record, and closes all, of which then nothing is left. What sends
// without connect() can have two: one of the old layout, and one that it made since.
func (w *oldWorld) checkRecords(t testing.TB, l *LB) {
	t.Helper()
	loose := 0
	for _, v := range w.talks {
		if !v.connected {
			loose++
		}
	}
	home, stored, older := countRecords(t, l)
	if n := home + stored + older; n < len(w.talks) || n > len(w.talks)+loose {
		t.Errorf("%d homes are taken, %d records stored, %d in the old way, by %d sockets", home, stored, older, len(w.talks))
	}
	for _, v := range w.talks {
		v.c.close()
	}
	if home, stored, older := countRecords(t, l); home+stored+older != 0 {
		t.Errorf("of closed sockets, %d homes are taken, %d records stored, %d in the old way", home, stored, older)
	}
}

// mapIDs are the kernel's numbers of the maps that are pinned as a layout's.
func mapIDs(t testing.TB, pins, dir string) map[string]ebpf.MapID {
	t.Helper()
	ids := map[string]ebpf.MapID{}
	for _, name := range entries(t, filepath.Join(pins, dir)) {
		m, err := ebpf.LoadPinnedMap(filepath.Join(pins, dir, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		info, err := m.Info()
		if err := errors.Join(err, m.Close()); err != nil {
			t.Fatal(err)
		}
		ids[name], _ = info.ID()
	}
	return ids
}

// optOutLayout2 leaves a cgroup alone, as the daemon of layout 2 did.
func optOutLayout2(t testing.TB, cfg Config, path string) {
	t.Helper()
	tr, err := cgroup.OpenTree()
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	id, level, err := tr.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(*ebpf.Map) error{
		"optouts":       func(m *ebpf.Map) error { return m.Put(id, layout.OptOut{Level: level, By: layout.ByDaemon}) },
		"optout_levels": func(m *ebpf.Map) error { return m.Put(uint32(0), uint64(1)<<level) },
	} {
		m, err := ebpf.LoadPinnedMap(filepath.Join(cfg.Pins, "layout-2", name), nil)
		if err == nil {
			err = errors.Join(put(m), m.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
