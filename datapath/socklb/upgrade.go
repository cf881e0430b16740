package socklb

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/socklb/layout"
)

// An upgrade from an older layout makes before it breaks. Each line is a state that works, and from
// which the next Open can continue:
//
//	layout-2                 its programs are on the hooks
//	layout-2, filling        new maps are filled from the old ones; discarded and started over
//	layout-2, layout-3       renamed into place: some hooks have the old programs, some the new
//	layout-3                 the old maps and then their layout's directory are removed
//
// A map whose layout has not changed is the same map in both layouts, so old and new programs see
// what programs write into it meanwhile (the records of sockets). The other maps hold only what
// user space writes, and the lock on the pins keeps other daemons from changing them while they are
// copied. (The lock does not keep out an opt-out command of the older version.)
//
// Up to layout 2, programs claimed a free home of a record under a spin lock, by rules other than
// ours. So our programs claim no home until the last of those is gone, and are then replaced once
// more.
const filling = "filling"

// convert has the functions that fill a map of this layout from one of an older layout, by the
// map's name.
var convert = map[string]func(to, from *ebpf.Map) error{
	layout.MapSets:         convertSets,
	layout.MapOptOutLevels: convertOptoutLevels,
}

// derive has the functions that fill a map which an older layout does not have from its other maps.
var derive = map[string]func(to *ebpf.Map, old map[string]*ebpf.Map) error{
	layout.MapAddressSieve: deriveSieve,
}

// goOn takes over the pins of the layouts that were found.
func (l *LB) goOn(cfg Config, found []int) error {
	newest := found[len(found)-1]
	if newest > layout.Number || found[0] < layout.Oldest {
		return fmt.Errorf("pins %s have %s, but this program knows %s to %s; run `straitd cleanup`, then start again",
			cfg.Pins, layout.Dir(newest), layout.Dir(layout.Oldest), layout.Dir(layout.Number))
	}
	if newest < layout.Number {
		if err := l.fill(cfg, newest); err != nil {
			return fmt.Errorf("upgrade pins %s from %s: %w; the old programs stay in force", cfg.Pins, layout.Dir(newest), err)
		}
	}
	if found[0] < layout.Number {
		if err := l.reuse(cfg, false); err != nil {
			return err
		}
		if err := afterGrace(); err != nil {
			return err
		}
	}
	if err := l.reuse(cfg, true); err != nil {
		return err
	}
	for _, old := range found {
		if old == layout.Number {
			continue
		}
		cfg.step("switched")
		if err := removeLayout(cfg.Pins, old); err != nil {
			return fmt.Errorf("remove pins of %s: %w", layout.Dir(old), err)
		}
		l.log.Info("upgraded the pinned maps in place", "pins", cfg.Pins, "from", layout.Dir(old), "to", layout.Dir(layout.Number))
	}
	return nil
}

// fill makes the maps of this layout beside those of an older one.
func (l *LB) fill(cfg Config, from int) error {
	tmp := filepath.Join(cfg.Pins, filling)
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return err
	}
	spec, err := l.spec(cfg)
	if err != nil {
		return err
	}
	specs := pinned(spec.Maps)
	old, err := openOld(layout.MapsDir(cfg.Pins, from), specs)
	if err != nil {
		return err
	}
	defer closeMaps(old)
	sizeAs(specs, old)
	for name, s := range specs {
		if err := fillOne(filepath.Join(tmp, name), s, old, name); err != nil {
			return fmt.Errorf("map %s: %w", name, err)
		}
		cfg.step("filled " + name)
	}
	if err := os.Rename(tmp, layout.MapsDir(cfg.Pins, layout.Number)); err != nil {
		return err
	}
	cfg.step("filled")
	return nil
}

// openOld opens the maps that the older layout has too.
func openOld(dir string, specs map[string]*ebpf.MapSpec) (map[string]*ebpf.Map, error) {
	old := map[string]*ebpf.Map{}
	for name := range specs {
		m, err := ebpf.LoadPinnedMap(filepath.Join(dir, name), nil)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			closeMaps(old)
			return nil, fmt.Errorf("open %s: %w", filepath.Join(dir, name), err)
		}
		old[name] = m
	}
	return old, nil
}

// sizeAs gives the new maps the sizes of the old ones; counters get the sizes of the maps that they
// belong to.
func sizeAs(specs map[string]*ebpf.MapSpec, old map[string]*ebpf.Map) {
	for name, m := range old {
		specs[name].MaxEntries = m.MaxEntries()
	}
	specs[layout.MapFrontendCounters].MaxEntries = specs[layout.MapSets].MaxEntries
	specs[layout.MapBackendCounters].MaxEntries = specs[layout.MapBackends].MaxEntries + 1
}

// fillOne pins the old map once more if it has the new layout. Otherwise it pins a new map, filled
// with what the old one holds.
func fillOne(pin string, spec *ebpf.MapSpec, all map[string]*ebpf.Map, name string) error {
	var m *ebpf.Map
	var err error
	old := all[name]
	if old != nil && spec.Compatible(old) == nil {
		m, err = old.Clone() // Pin on old would move its pin
	} else {
		m, err = ebpf.NewMap(spec)
	}
	if err != nil {
		return err
	}
	defer m.Close()
	switch {
	case old == nil && derive[name] != nil:
		err = derive[name](m, all)
	case old != nil && spec.Compatible(old) != nil && convert[name] != nil:
		err = convert[name](m, old)
	case old != nil && spec.Compatible(old) != nil:
		err = errors.New("its layout has changed and there is no way to convert it (please report this)")
	}
	if err != nil {
		return err
	}
	return m.Pin(pin)
}

// deriveSieve marks the addresses of all frontends. Layouts before 4 had no sieve of addresses.
func deriveSieve(to *ebpf.Map, old map[string]*ebpf.Map) error {
	var v layout.Views
	s, err := viewSieve(&v, to)
	if err == nil {
		err = layout.Each(old[layout.MapServices], func(k layout.ServiceKey, _ layout.Service) error {
			s.mark(k.L4().IP)
			return nil
		})
	}
	return errors.Join(err, v.Close())
}

// convertSets fills the sets. In layout 1 a set was only the word that says which slots it has.
func convertSets(to, from *ebpf.Map) error {
	var v layout.Views
	sets, err := layout.View[layout.Set](&v, to, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return err
	}
	words, err := layout.View[uint64](&v, from, unix.PROT_READ)
	if err != nil {
		return errors.Join(err, v.Close())
	}
	for i := range words {
		if w := atomic.LoadUint64(&words[i]); w != 0 {
			atomic.StoreUint64(layout.WordOf(&sets[i]), w)
		}
	}
	return v.Close()
}

// convertOptoutLevels fills the sieve. Layout 2 had only the levels, so the sieve lets every cgroup
// through until the next change.
func convertOptoutLevels(to, from *ebpf.Map) error {
	var s layout.OptOutSieve
	if err := from.Lookup(uint32(0), &s.Levels); err != nil {
		return err
	}
	for i := range s.Bits {
		s.Bits[i] = math.MaxUint64
	}
	return to.Put(uint32(0), s)
}

// removeLayout removes the pins of an older layout. By now the names of the maps are symbolic
// links, so any regular file beside them is a map of layout 1.
func removeLayout(dir string, old int) error {
	if old == 1 {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.Type().IsRegular() {
				continue
			}
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return os.RemoveAll(filepath.Join(dir, layout.Dir(old)))
}
