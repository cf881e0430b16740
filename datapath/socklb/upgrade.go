package socklb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"strait.io/strait/datapath/socklb/layout"
)

// An upgrade from an older layout makes before it breaks. Each line is a state that works, and from
// which the next Open can continue:
//
//	layout-4                 its programs are on the hooks
//	layout-4, filling        new maps are filled from the old ones; discarded and started over
//	layout-4, layout-5       renamed into place: some hooks have the old programs, some the new
//	layout-5                 the old maps and then their layout's directory are removed
//
// A map whose layout has not changed is the same map in both layouts, so old and new programs see
// what programs write into it meanwhile (the records of sockets). The other maps hold only what
// user space writes, and the lock on the pins keeps other daemons from changing them while they are
// copied. (The lock does not keep out an opt-out command of the older version.)
const filling = "filling"

// upgrades are the older layouts that this program can upgrade from, and how.
type upgrades struct {
	// oldest is the first layout that it knows.
	oldest int
	// convert has the functions that fill a map of this layout from one of an older layout, by the
	// map's name.
	convert map[string]func(to, from *ebpf.Map) error
	// derive has the functions that fill a map which an older layout does not have from its other
	// maps.
	derive map[string]func(to *ebpf.Map, old map[string]*ebpf.Map) error
}

// known has the upgrades of this program. There is none yet: no layout before today's was released.
// TestUpgradeLayout upgrades from a layout of its own.
var known = upgrades{oldest: layout.Oldest}

// goOn takes over the pins of the layouts that were found.
func (l *LB) goOn(cfg Config, found []int) error {
	newest := found[len(found)-1]
	if newest > layout.Number || found[0] < cfg.upgrades.oldest {
		return fmt.Errorf("pins %s have %s, but this program knows %s; run `straitd cleanup`, then start again",
			cfg.Pins, dirs(found, " and "), dirs(slices.Compact([]int{cfg.upgrades.oldest, layout.Number}), " to "))
	}
	if newest < layout.Number {
		if err := l.fill(cfg, newest); err != nil {
			return fmt.Errorf("upgrade pins %s from %s: %w; the old programs stay in force", cfg.Pins, layout.Dir(newest), err)
		}
	}
	if err := l.reuse(cfg); err != nil {
		return err
	}
	for _, old := range found {
		if old == layout.Number {
			continue
		}
		cfg.step("switched")
		if err := os.RemoveAll(layout.MapsDir(cfg.Pins, old)); err != nil {
			return fmt.Errorf("remove pins of %s: %w", layout.Dir(old), err)
		}
		l.log.Info("upgraded the pinned maps in place", "pins", cfg.Pins, "from", layout.Dir(old), "to", layout.Dir(layout.Number))
	}
	return nil
}

// dirs lists the names of layouts' directories.
func dirs(numbers []int, separator string) string {
	names := make([]string, len(numbers))
	for i, n := range numbers {
		names[i] = layout.Dir(n)
	}
	return strings.Join(names, separator)
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
		if err := cfg.upgrades.fillOne(filepath.Join(tmp, name), s, old, name); err != nil {
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
func (u *upgrades) fillOne(pin string, spec *ebpf.MapSpec, all map[string]*ebpf.Map, name string) error {
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
	case old == nil && u.derive[name] != nil:
		err = u.derive[name](m, all)
	case old != nil && spec.Compatible(old) != nil && u.convert[name] != nil:
		err = u.convert[name](m, old)
	case old != nil && spec.Compatible(old) != nil:
		err = errors.New("its layout has changed and there is no way to convert it (please report this)")
	}
	if err != nil {
		return err
	}
	return m.Pin(pin)
}
