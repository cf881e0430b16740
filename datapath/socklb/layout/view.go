package layout

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Views holds array maps that are mapped into memory.
type Views struct{ mappings [][]byte }

// View maps an array map and returns its values as a slice, which is valid until v is closed.
func View[T any](v *Views, m *ebpf.Map, prot int) ([]T, error) {
	size := int(unsafe.Sizeof(*new(T)))
	if int(m.ValueSize()) != size {
		return nil, fmt.Errorf("map a view of %s: value is %d bytes, not %d", m, m.ValueSize(), size)
	}
	b, err := unix.Mmap(m.FD(), 0, int(m.MaxEntries())*size, prot, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map a view of %s: %w", m, err)
	}
	v.mappings = append(v.mappings, b)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), m.MaxEntries()), nil
}

// Close unmaps the maps; their slices must not be used afterwards.
func (v *Views) Close() error {
	var errs []error
	for _, b := range v.mappings {
		errs = append(errs, unix.Munmap(b))
	}
	v.mappings = nil
	return errors.Join(errs...)
}
