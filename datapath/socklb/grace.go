package socklb

import (
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// The commands of linux/membarrier.h. MEMBARRIER_CMD_QUERY returns the commands that the kernel has.
// On more than one CPU, MEMBARRIER_CMD_GLOBAL waits for an RCU grace period, that is, until every
// BPF program that is running now has ended.
const (
	membarrierQuery  = 0
	membarrierGlobal = 1
)

func membarrier() error {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// gracePeriod waits for RCU grace periods.
type gracePeriod struct {
	// outer is an array of maps. Replacing its element also waits for a grace period, on every
	// kernel.
	outer, inner *ebpf.Map
}

// newGracePeriod prepares the fallback for kernels on which membarrier does not wait. With
// nohz_full it is refused. Where one CPU is online it does nothing, although a preemptible kernel
// can interrupt a program even there.
func newGracePeriod() (*gracePeriod, error) {
	innerSpec := &ebpf.MapSpec{Name: "grace_inner", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
	outer, err := ebpf.NewMap(&ebpf.MapSpec{Name: "grace_outer", Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: 1, InnerMap: innerSpec})
	if err != nil {
		return nil, fmt.Errorf("make map grace_outer: %w", err)
	}
	inner, err := ebpf.NewMap(innerSpec)
	if err != nil {
		outer.Close()
		return nil, fmt.Errorf("make map grace_inner: %w", err)
	}
	return &gracePeriod{outer, inner}, nil
}

func (g *gracePeriod) wait() error {
	if severalCPUs() && membarrier() == nil {
		return nil
	}
	if err := g.outer.Put(uint32(0), g.inner); err != nil {
		return fmt.Errorf("wait for running programs: %w", err)
	}
	return nil
}

func (g *gracePeriod) close() {
	g.outer.Close()
	g.inner.Close()
}

// severalCPUs reports whether more than one CPU is online. It asks each time, because CPUs come and
// go.
func severalCPUs() bool {
	b, err := os.ReadFile("/sys/devices/system/cpu/online")
	return err == nil && strings.ContainsAny(string(b), "-,")
}
