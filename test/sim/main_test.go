package sim

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the collector wait longer than usual, but not beyond what a small machine has: most of what a
// simulation allocates is soon garbage.
func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(4 << 30)
	os.Exit(m.Run())
}
