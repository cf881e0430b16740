package testutil

import "runtime"

// Heap returns how many bytes of the heap stay in use for what fn returns. Express limits as a
// multiple of something plain measured in the same way: absolute sizes change with Go's releases.
func Heap(fn func() any) float64 {
	before := inUse()
	kept := fn()
	after := inUse()
	runtime.KeepAlive(kept)
	return after - before
}

func inUse() float64 {
	// Twice, because what was in a sync.Pool is freed only by the second.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
