package testutil

import "runtime"

// Heap returns how many bytes of the heap stay in use for what fn returns. Bounds on them are best given as a multiple
// of what something plain takes, measured the same way: bytes alone change with Go's releases.
func Heap(fn func() any) float64 {
	before := inUse()
	kept := fn()
	after := inUse()
	runtime.KeepAlive(kept)
	return after - before
}

func inUse() float64 {
	// Twice: what was in a sync.Pool is free only after the second.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
