package socklb

import (
	"maps"
	"runtime"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sync/errgroup"
)

// loadCollection loads the object, with the maps in old instead of new ones of the same names. It
// loads several programs at a time, because the kernel's verifier takes most of the time, and uses
// one processor for each program.
func loadCollection(spec *ebpf.CollectionSpec, old map[string]*ebpf.Map) (*ebpf.Collection, error) {
	onlyMaps := spec.Copy()
	onlyMaps.Programs = nil
	c, err := ebpf.NewCollectionWithOptions(onlyMaps, ebpf.CollectionOptions{MapReplacements: old})
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(spec.Programs))
	loaded := make([]*ebpf.Program, len(names))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		one := spec.Copy()
		one.Programs = map[string]*ebpf.ProgramSpec{name: one.Programs[name]}
		g.Go(func() error {
			part, err := ebpf.NewCollectionWithOptions(one, ebpf.CollectionOptions{MapReplacements: c.Maps})
			if err != nil {
				return err
			}
			defer part.Close()
			loaded[i] = part.DetachProgram(name)
			return nil
		})
	}
	err = g.Wait()
	c.Programs = map[string]*ebpf.Program{}
	for i, p := range loaded {
		if p != nil {
			c.Programs[names[i]] = p
		}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
