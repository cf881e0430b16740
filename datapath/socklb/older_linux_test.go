package socklb

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/cgroup"
	"strait.io/strait/datapath/socklb/layout"
)

// No layout before today's was released, so tests upgrade from one of their own. It is today's, with one map of each
// kind that an upgrade knows: sets have another size and are converted, the sieve of addresses has no pin and is
// derived, and all others are shared.
const olderNumber = layout.Number - 1

// fromOlder is how this program upgrades from that layout.
var fromOlder = upgrades{
	oldest: olderNumber,
	convert: map[string]func(to, from *ebpf.Map) error{
		layout.MapSets: func(to, from *ebpf.Map) error {
			return layout.Each(from, func(i uint32, s olderSet) error { return to.Put(i, s.Set) })
		},
	},
	derive: map[string]func(to *ebpf.Map, old map[string]*ebpf.Map) error{
		layout.MapAddressSieve: func(to *ebpf.Map, old map[string]*ebpf.Map) error { return markAll(to, old[layout.MapServices]) },
	},
}

// olderSet is a value of the older layout's map of sets.
type olderSet struct {
	layout.Set
	Unused uint64
}

// markAll marks the addresses of all frontends in a sieve.
func markAll(sieve, services *ebpf.Map) error {
	var v layout.Views
	s, err := viewSieve(&v, sieve)
	if err == nil {
		err = layout.Each(services, func(k layout.ServiceKey, _ layout.Service) error {
			s.mark(k.L4().IP)
			return nil
		})
	}
	return errors.Join(err, v.Close())
}

// openOlder makes pins as a daemon of the older layout would, with the frontends in its maps. Its programs are attached
// without a place among others.
func openOlder(t testing.TB, cfg Config, fronts []datapath.Frontend) {
	t.Helper()
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	c := loadOlder(t, cfg.withDefaults())
	defer c.Close()
	cg, err := cgroup.Open(cfg.Cgroup, true)
	if err != nil {
		t.Fatal(err)
	}
	fillOlder(t, c.Maps, fronts)
	if err := markAll(c.Maps[layout.MapAddressSieve], c.Maps[layout.MapServices]); err != nil {
		t.Fatal(err)
	}
	maps := pinned(c.Maps)
	delete(maps, layout.MapAddressSieve)
	dir, links := layout.MapsDir(cfg.Pins, olderNumber), filepath.Join(cfg.Pins, layout.LinksDir)
	err = errors.Join(os.MkdirAll(dir, 0o700), os.Mkdir(links, 0o700), pinMaps(dir, maps))
	for name := range maps {
		err = errors.Join(err, os.Symlink(filepath.Join(layout.Dir(olderNumber), name), filepath.Join(cfg.Pins, name)))
	}
	err = errors.Join(err, attachAll(c.Programs, links, target{Dir: cg}, func(string) {}))
	if err != nil {
		t.Fatal(err)
	}
}

// loadOlder loads the object of the older layout.
func loadOlder(t testing.TB, cfg Config) *ebpf.Collection {
	t.Helper()
	fs, err := probe()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := (&LB{features: fs}).spec(cfg)
	if err != nil {
		t.Fatal(err)
	}
	sets := spec.Maps[layout.MapSets]
	sets.ValueSize += 8
	sets.Key, sets.Value = nil, nil // the types are those of today's layout
	c, err := loadCollection(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// countedBefore is what a CPU counted of the i-th frontend before the upgrade.
func countedBefore(i, cpu int) layout.FrontendCounter {
	return layout.FrontendCounter{Connects: uint64(1000 * (i + 1)), Refused: uint64(10*i + cpu + 1)}
}

// fillOlder writes frontends, with indexes from 3 and slots from 5 that do not begin at 0.
func fillOlder(t testing.TB, m map[string]*ebpf.Map, fronts []datapath.Frontend) {
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
			if err := m[layout.MapBackends].Put(next+uint32(n), s); err != nil {
				t.Fatal(err)
			}
		}
		counts := make([]layout.FrontendCounter, ebpf.MustPossibleCPU())
		for cpu := range counts {
			counts[cpu] = countedBefore(i, cpu)
		}
		set := olderSet{Set: layout.Set{Base: block.base, Count: block.count}}
		err = errors.Join(m[layout.MapSets].Put(index, set), m[layout.MapServices].Put(layout.KeyOf(f.Addr), index),
			m[layout.MapFrontendCounters].Put(index, counts))
		if err != nil {
			t.Fatal(err)
		}
		next = block.end()
	}
}

// optOutOlder leaves a cgroup alone, as a daemon of the older layout would.
func optOutOlder(t testing.TB, cfg Config, path string) {
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
	sieve := layout.OptOutSieve{Levels: 1 << level}
	for i := range sieve.Bits {
		sieve.Bits[i] = ^uint64(0) // lets every cgroup through to the map
	}
	for name, put := range map[string]func(*ebpf.Map) error{
		layout.MapOptOuts:      func(m *ebpf.Map) error { return m.Put(id, layout.OptOut{Level: level, By: layout.ByDaemon}) },
		layout.MapOptOutLevels: func(m *ebpf.Map) error { return m.Put(uint32(0), sieve) },
	} {
		m, err := ebpf.LoadPinnedMap(filepath.Join(layout.MapsDir(cfg.Pins, olderNumber), name), nil)
		if err == nil {
			err = errors.Join(put(m), m.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// mapIDs are the kernel's numbers of the maps that are pinned as a layout's.
func mapIDs(t testing.TB, pins string, number int) map[string]ebpf.MapID {
	t.Helper()
	ids := map[string]ebpf.MapID{}
	dir := layout.MapsDir(pins, number)
	for _, name := range entries(t, dir) {
		m, err := ebpf.LoadPinnedMap(filepath.Join(dir, name), nil)
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
