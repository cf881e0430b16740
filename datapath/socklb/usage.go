package socklb

import (
	"log/slog"

	"github.com/cilium/ebpf"
)

// MapUsage says how full a map is.
type MapUsage struct {
	Map   string `json:"map"`
	Used  uint64 `json:"used"`
	Limit uint64 `json:"limit"`
}

// BackendsRun is the usage row of room for a large set: slots of a set are in a row, so a frontend of n backends
// needs a run of n free ones. Limit - Used is the longest; where that is less than Limit - Used of the
// map backends, the free slots are scattered.
const BackendsRun = "backends_run"

// Usage says how full each map is, as of the last Reconcile that ended: it does not wait for one. What is retired
// and not free yet counts as used; it becomes free when room is needed. A map that cannot be read is left out,
// and the log says why.
func (l *LB) Usage() (rows []MapUsage) {
	if own := l.used.Load(); own != nil {
		rows = append(rows, *own...)
	}
	err := l.Look(func(r *Reader) error {
		rows = append(rows, r.usage(l.log)...)
		return nil
	})
	if err != nil {
		return nil
	}
	return rows
}

// usage is that of the maps which only we write.
func (t *table) usage() []MapUsage {
	return []MapUsage{
		{socklbMapServices, uint64(len(t.held)), uint64(t.maxFrontends)},
		{socklbMapSets, t.indexes.used(), uint64(t.maxFrontends)},
		{socklbMapBackends, t.slots.used(), uint64(t.maxBackends)},
		{BackendsRun, uint64(t.maxBackends - t.slots.largest()), uint64(t.maxBackends)},
	}
}

// usage is that of the maps which programs and other processes write.
func (r *Reader) usage(log *slog.Logger) (rows []MapUsage) {
	for _, u := range []struct {
		name  string
		m     *ebpf.Map
		count func(*ebpf.Map) (uint64, error)
	}{
		{socklbMapSockets, r.maps.Sockets, countHomes},
		{socklbMapSocketsMore, r.maps.SocketsMore, countEntries[socklbMoreKey, socklbFlow]},
		{socklbMapAffinities, r.maps.Affinities, countEntries[socklbAffinityKey, socklbAffinity]},
		{socklbMapOptouts, r.maps.Optouts, countEntries[uint64, socklbOptout]},
	} {
		n, err := u.count(u.m)
		if err != nil {
			log.Warn("usage of a map is unknown", "map", u.name, "err", err)
			continue
		}
		rows = append(rows, MapUsage{u.name, n, uint64(u.m.MaxEntries())})
	}
	return rows
}

func countHomes(m *ebpf.Map) (n uint64, err error) {
	err = all(m, func(_ uint32, r socklbRecord) error {
		if r.owner() != 0 {
			n++
		}
		return nil
	})
	return n, err
}

func countEntries[K, V any](m *ebpf.Map) (n uint64, err error) {
	err = all(m, func(K, V) error {
		n++
		return nil
	})
	return n, err
}
