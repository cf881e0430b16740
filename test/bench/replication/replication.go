// Package replication measures how records reach all nodes of a large clusterset: in a simulation of
// the shipped node, and with real daemons' gossip on this machine.
//
// Inputs are sizes; outputs are metrics. It must not know how records travel.
package replication

import (
	"context"
	"runtime"
	"time"

	"strait.io/strait/test/sim"
)

// Size is how much is measured.
type Size struct {
	// Clusters and Nodes of each are simulated.
	Clusters, Nodes int
	// Daemons is how many real ones run, in clusters of twelve, and Rest how long they are watched.
	Daemons int
	Rest    time.Duration
}

// Measure returns the metrics.
func Measure(ctx context.Context, s Size) (map[string]float64, error) {
	f, err := sim.Measure(1, s.Clusters, s.Nodes, true, sim.Meter{Now: time.Now, Memory: inUse})
	if err != nil {
		return nil, err
	}
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	out := map[string]float64{
		"replication_nodes":             float64(s.Clusters * s.Nodes),
		"replication_half_ms":           ms(f.Half),
		"replication_p99_ms":            ms(f.Most),
		"replication_p99_ms_lossy":      ms(f.Lossy),
		"replication_change_bytes":      f.ChangeBytes,
		"replication_change_bytes_busy": f.BusyBytes,
		"replication_p99_ms_busy":       ms(f.Busy),
		"replication_node_kb_s_busy":    f.BusyBytes * 500 / 1e3,
		"replication_relay_kb_s_busy":   f.BusiestKB,
		"replication_idle_bytes_s":      f.RestBytes + f.HeartbeatKB*1e3,
		"replication_newcomer_kb":       f.NewcomerBytes / 1e3,
		"replication_newcomer_ms":       ms(f.Newcomer),
		"replication_cpu_rest_percent":  float64(f.CPUAtRest) / float64(time.Second) * 100,
		"replication_memory_mb":         f.Memory / 1e6,
		"replication_change_cpu_us":     float64(f.CPUOfChange) / float64(time.Microsecond),
	}
	return out, daemons(ctx, s, out)
}

// inUse is how many bytes of memory are in use.
func inUse() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
