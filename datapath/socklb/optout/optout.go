package optout

import (
	"errors"
	"fmt"
	"maps"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/socklb/cgroup"
	"strait.io/strait/datapath/socklb/layout"
)

// Set sets the cgroups (paths) whose new connections are left alone, along with those of the
// cgroups below them. What Add named stays opted out too. A cgroup that cannot be found is an
// error; the others are still set.
func Set(pins string, cgroups []string) error {
	t, err := cgroup.OpenTree()
	if err != nil {
		return fmt.Errorf("set opt-outs: %w", err)
	}
	defer t.Close()
	var errs []error
	want := map[uint64]uint32{}
	for _, path := range cgroups {
		id, level, err := t.Find(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("opt out %w", err))
			continue
		}
		want[id] = level
	}
	err = changeOptOuts(pins, t, func(have optOuts) {
		have.drop(layout.ByDaemon)
		for id, level := range want {
			have.add(id, level, layout.ByDaemon)
		}
	})
	return errors.Join(append(errs, err)...)
}

// Keep makes programs leave alone exactly the cgroups that are listed, and forgets those that are
// gone.
func Keep(pins string) error {
	t, err := cgroup.OpenTree()
	if err != nil {
		return fmt.Errorf("keep opt-outs: %w", err)
	}
	defer t.Close()
	if err := changeOptOuts(pins, t, func(optOuts) {}); err != nil {
		return fmt.Errorf("keep opt-outs: %w", err)
	}
	return nil
}

// List lists the cgroups that opted out, by path, sorted. It needs no daemon. A cgroup that was
// removed is not listed: no process is in it, and the next change forgets it.
func List(pins string) ([]string, error) {
	t, err := cgroup.OpenTree()
	if err != nil {
		return nil, fmt.Errorf("list opt-outs: %w", err)
	}
	defer t.Close()
	m, err := layout.Open(pins, layout.MapOptOuts, &ebpf.LoadPinOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("list opt-outs: %w", err)
	}
	defer m.Close()
	ids := map[uint64]bool{}
	err = layout.Each(m, func(id uint64, _ layout.OptOut) error {
		ids[id] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list opt-outs: %w", err)
	}
	paths, err := t.Paths(ids)
	if err != nil {
		return nil, fmt.Errorf("list opt-outs: %w", err)
	}
	return paths, nil
}

// Add makes the load balancer leave alone the new connections of a cgroup's processes, and of the
// cgroups below it. It needs no daemon and outlives it, until Remove.
func Add(pins, path string) error {
	return changeOne(pins, path, "add opt-out", func(have optOuts, id uint64, level uint32) error {
		have.add(id, level, layout.ByOperator)
		return nil
	})
}

// Remove undoes Add. It is an error if the cgroup has not opted out, or did so only by the daemon's
// configuration.
func Remove(pins, path string) error {
	return changeOne(pins, path, "remove opt-out", func(have optOuts, id uint64, _ uint32) error {
		switch o := have[id]; {
		case o.By == layout.ByDaemon:
			return fmt.Errorf("cgroup %s was opted out by the daemon (a pod's annotation, or the daemon's configuration); change it there", path)
		case o.By == 0:
			return fmt.Errorf("cgroup %s has not opted out", path)
		default:
			have.set(id, o.Level, o.By&^layout.ByOperator)
		}
		return nil
	})
}

func changeOne(pins, path, verb string, change func(have optOuts, id uint64, level uint32) error) error {
	t, err := cgroup.OpenTree()
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	defer t.Close()
	id, level, err := t.Find(path)
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	var refused error
	err = changeOptOuts(pins, t, func(have optOuts) { refused = change(have, id, level) })
	if err = errors.Join(err, refused); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return nil
}

// optOuts has the entries of the map, by cgroup id.
type optOuts map[uint64]layout.OptOut

func (o optOuts) set(id uint64, level, by uint32) {
	if by == 0 {
		delete(o, id)
		return
	}
	o[id] = layout.OptOut{Level: level, By: by}
}

func (o optOuts) add(id uint64, level, by uint32) { o.set(id, level, o[id].By|by) }

// drop removes the opt-outs of one party.
func (o optOuts) drop(by uint32) {
	for id, e := range o {
		o.set(id, e.Level, e.By&^by)
	}
}

// sieve returns a sieve that lets each of the cgroups through; see struct optout_sieve.
func (o optOuts) sieve() (s layout.OptOutSieve) {
	for id, e := range o {
		s.Levels |= 1 << e.Level
		bit := sieveBit(id)
		s.Bits[bit/64] |= 1 << (bit % 64)
	}
	return s
}

// sieveBit is the same hash as in bpf/lib/optout.h.
func sieveBit(id uint64) uint64 { return id * 0x9e3779b97f4a7c15 >> (64 - 12) }

// with returns the cgroups of both, for making a sieve.
func (o optOuts) with(more optOuts) optOuts {
	both := maps.Clone(o)
	maps.Copy(both, more)
	return both
}

// changeOptOuts reads what the map holds, lets change modify it, and writes the difference. It
// takes a lock, because the daemon and any number of commands can do so at the same time.
func changeOptOuts(pins string, t *cgroup.Tree, change func(have optOuts)) error {
	lock, err := layout.Lock(layout.MapsDir(pins, layout.Number), unix.LOCK_EX)
	if err != nil {
		return fmt.Errorf("pins %s: %w", pins, err)
	}
	defer lock.Close()
	entries, err := layout.Open(pins, layout.MapOptOuts, nil)
	if err != nil {
		return err
	}
	defer entries.Close()
	levels, err := layout.Open(pins, layout.MapOptOutLevels, nil)
	if err != nil {
		return err
	}
	defer levels.Close()
	have := optOuts{}
	err = layout.Each(entries, func(id uint64, e layout.OptOut) error {
		have[id] = e
		return nil
	})
	if err != nil {
		return err
	}
	want := maps.Clone(have)
	change(want)
	for id := range want { // forget removed cgroups: ids are never reused
		if _, err := t.Path(id); errors.Is(err, unix.ESTALE) {
			delete(want, id)
		}
	}
	return writeOptOuts(entries, levels, have, want)
}

// writeOptOuts writes what differs. The sieve lets a cgroup through for as long as the cgroup has
// an entry, so no entry is ever there but not found. Writing a sieve is not atomic, but a bit that
// is set before and after is set throughout. Removals go first, to make room.
func writeOptOuts(entries, levels *ebpf.Map, have, want optOuts) error {
	if maps.Equal(have, want) {
		return putSieve(levels, want)
	}
	if err := putSieve(levels, have.with(want)); err != nil {
		return err
	}
	var errs []error
	for id := range have {
		if _, ok := want[id]; ok {
			continue
		}
		if err := entries.Delete(id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, fmt.Errorf("delete from map %s: %w", layout.MapOptOuts, err))
			want[id] = have[id]
		}
	}
	for id, e := range want {
		if have[id] == e {
			continue
		}
		err := entries.Put(id, e)
		if errors.Is(err, unix.E2BIG) {
			err = fmt.Errorf("map %s holds %d cgroups and takes no more; raise maxOptOuts", layout.MapOptOuts, entries.MaxEntries())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cgroup %d: %w", id, err))
			delete(want, id)
		}
	}
	return errors.Join(append(errs, putSieve(levels, want))...)
}

func putSieve(m *ebpf.Map, of optOuts) error {
	if err := m.Put(uint32(0), of.sieve()); err != nil {
		return fmt.Errorf("write map %s: %w", layout.MapOptOutLevels, err)
	}
	return nil
}
