package socklb

import (
	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/layout"
)

// Usage returns how full each map is. It does not wait for a Reconcile: the maps that only this
// process writes are shown as of the last Reconcile that ended. What is retired but not yet free
// counts as used; it becomes free when room is needed. A map that cannot be read is left out, and
// the log has the reason.
func (l *LB) Usage() (rows []datapath.MapUsage) {
	if own := l.used.Load(); own != nil {
		rows = append(rows, *own...)
	}
	err := l.Look(func(r *inspect.Reader) error {
		rows = append(rows, r.Usage(l.log)...)
		return nil
	})
	if err != nil {
		return nil
	}
	return rows
}

// usage returns the usage of the maps that only this process writes.
func (t *table) usage() []datapath.MapUsage {
	return []datapath.MapUsage{
		{Map: layout.MapServices, Used: uint64(len(t.installed)), Limit: uint64(t.maxFrontends)},
		{Map: layout.MapAddresses, Used: uint64(len(t.listed)), Limit: uint64(t.maxFrontends)},
		{Map: layout.MapSets, Used: t.indexes.used(), Limit: uint64(t.maxFrontends)},
		{Map: layout.MapBackends, Used: t.slots.used(), Limit: uint64(t.maxBackends)},
		{Map: inspect.BackendsRun, Used: uint64(t.maxBackends - t.slots.largest()), Limit: uint64(t.maxBackends)},
	}
}
