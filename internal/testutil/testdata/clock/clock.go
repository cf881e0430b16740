// This file is part of no package here. BuildClock adds it to straitd's main package when it builds a
// daemon whose clock it can set; see clock_linux.go.

package main

import (
	"os"
	"syscall"
	"unsafe"
)

// original is the kernel's clock_gettime, and ahead by how many seconds its CLOCK_REALTIME and its
// CLOCK_MONOTONIC are changed. The assembler uses both.
var (
	original uintptr
	ahead    *[2]int64
)

// install makes the runtime call shifted instead of original.
func install()

func init() {
	f, err := os.Open(os.Getenv("STRAIT_TEST_CLOCK"))
	if err != nil {
		panic(err)
	}
	defer f.Close()
	// Shared with the test, so that it can set the clock while the daemon runs.
	m, err := syscall.Mmap(int(f.Fd()), 0, 16, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	ahead = (*[2]int64)(unsafe.Pointer(&m[0]))
	install()
	if original == 0 {
		panic("the kernel has no vDSO")
	}
}
