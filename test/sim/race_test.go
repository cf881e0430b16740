//go:build race

package sim

// The race detector makes all of this about eight times as slow, and finds nothing here: there is no goroutine
// in a simulation.
func init() { slow = 8 }
