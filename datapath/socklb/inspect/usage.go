//go:build linux

package inspect

import (
	"log/slog"

	"github.com/cilium/ebpf"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
)

// BackendsRun is the usage row that shows how much room there is for a large set. The slots of a
// set are consecutive, so a frontend of n backends needs a run of n free ones. Limit - Used is the
// longest such run; if that is less than Limit - Used of the map backends, the free slots are
// scattered.
const BackendsRun = "backends_run"

// soft has the maps that can be full without harm: affinities makes room by itself, and a record
// that finds no room in sockets goes into the storage of its socket.
var soft = map[string]bool{layout.MapAffinities: true, layout.MapSockets: true}

// Usage returns the usage of the maps that programs and other processes write. A map that cannot be
// read is left out, and the log has the reason.
func (r *Reader) Usage(log *slog.Logger) (rows []datapath.MapUsage) {
	for _, u := range []struct {
		name  string
		m     *ebpf.Map
		count func(*ebpf.Map) (uint64, error)
	}{
		{layout.MapSockets, r.maps.Sockets, countHomes},
		{layout.MapAffinities, r.maps.Affinities, countEntries[layout.AffinityKey, layout.Affinity]},
		{layout.MapOptOuts, r.maps.Optouts, countEntries[uint64, layout.OptOut]},
	} {
		n, err := u.count(u.m)
		if err != nil {
			log.Warn("cannot read the usage of a map", "map", u.name, "err", err)
			continue
		}
		rows = append(rows, datapath.MapUsage{Map: u.name, Used: n, Limit: uint64(u.m.MaxEntries()), Soft: soft[u.name]})
	}
	return rows
}

func countHomes(m *ebpf.Map) (n uint64, err error) {
	err = layout.Each(m, func(_ uint32, r layout.Record) error {
		if r.Owner() != 0 {
			n++
		}
		return nil
	})
	return n, err
}

func countEntries[K, V any](m *ebpf.Map) (n uint64, err error) {
	err = layout.Each(m, func(K, V) error {
		n++
		return nil
	})
	return n, err
}
