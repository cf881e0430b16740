package socklb

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cilium/ebpf"

	"strait.io/strait/datapath"
)

// readTries bounds how often a read that met a change starts again.
const readTries = 10

// Read returns what the maps pinned in a directory hold, as LB.Frontends does, without a load balancer:
// it attaches and changes nothing, and needs no daemon. Each frontend is seen as it was at one moment.
func Read(pins string) ([]datapath.Frontend, error) {
	r, err := openReader(pins)
	if err != nil {
		return nil, fmt.Errorf("read socket load balancer: %w", err)
	}
	defer r.close()
	for range readTries {
		have, err := r.read()
		if err == nil {
			return listed(have), nil
		}
		if !errors.Is(err, ebpf.ErrIterationAborted) {
			return nil, fmt.Errorf("read socket load balancer: pins %s: %w", pins, err)
		}
	}
	return nil, fmt.Errorf("read socket load balancer: pins %s: maps change faster than they can be read", pins)
}

type reader struct {
	services, sets, backends *ebpf.Map
}

func openReader(pins string) (*reader, error) {
	var r reader
	for name, m := range map[string]**ebpf.Map{
		socklbMapServices: &r.services, socklbMapSets: &r.sets, socklbMapBackends: &r.backends,
	} {
		opened, err := ebpf.LoadPinnedMap(filepath.Join(pins, name), &ebpf.LoadPinOptions{ReadOnly: true})
		if err != nil {
			r.close()
			return nil, fmt.Errorf("open %s: %w", filepath.Join(pins, name), permission(err))
		}
		*m = opened
	}
	return &r, nil
}

func (r *reader) close() {
	for _, m := range []*ebpf.Map{r.services, r.sets, r.backends} {
		m.Close() // nil is fine
	}
}

func (r *reader) read() ([]held, error) {
	var have []held
	var key socklbServiceKey
	var value socklbService
	it := r.services.Iterate()
	for it.Next(&key, &value) {
		e, slots, err := r.set(value.Index)
		if err != nil {
			return nil, fmt.Errorf("frontend %s: %w", key.addr(), err)
		}
		have = append(have, held{frontend: datapath.Frontend{Addr: key.addr(), Backends: backendsOf(slots)}, index: value.Index, block: e})
	}
	return have, it.Err()
}

// set reads a set's slots, again if the set flipped meanwhile: its old slots may be another's by then.
func (r *reader) set(index uint32) (extent, []socklbBackend, error) {
	for range readTries {
		var before, after uint64
		if err := r.sets.Lookup(index, &before); err != nil {
			return extent{}, nil, fmt.Errorf("read set %d: %w", index, err)
		}
		e := extentOf(before)
		slots := make([]socklbBackend, e.count)
		for i := range slots {
			if err := r.backends.Lookup(e.base+uint32(i), &slots[i]); err != nil {
				return extent{}, nil, fmt.Errorf("read slot %d: %w", e.base+uint32(i), err)
			}
		}
		if err := r.sets.Lookup(index, &after); err != nil {
			return extent{}, nil, fmt.Errorf("read set %d again: %w", index, err)
		}
		if before == after {
			return e, slots, nil
		}
	}
	return extent{}, nil, ebpf.ErrIterationAborted
}
