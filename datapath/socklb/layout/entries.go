package layout

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// Batch is how many entries one system call reads at most.
const Batch = 4096

// Each calls each for every entry of a map that is not per CPU. The map can change meanwhile.
func Each[K, V any](m *ebpf.Map, each func(K, V) error) error {
	n := min(Batch, int(m.MaxEntries()))
	keys, values := make([]K, n), make([]V, n)
	var cursor ebpf.MapBatchCursor
	for {
		got, err := m.BatchLookup(&cursor, keys, values, nil)
		last := errors.Is(err, ebpf.ErrKeyNotExist)
		if err != nil && !last {
			return fmt.Errorf("read %s: %w", m, err)
		}
		for i := range got {
			if err := each(keys[i], values[i]); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}
