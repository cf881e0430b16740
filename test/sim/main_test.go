package sim

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the collector wait longer than usual, but not beyond what a small machine has: most of what a
// simulation allocates is soon garbage. What 1,000 nodes know of each other takes more than that.
func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(map[string]int64{"short": 4 << 30, "long": 10 << 30}[*preset])
	os.Exit(m.Run())
}
