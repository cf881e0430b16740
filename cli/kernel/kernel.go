// Package kernel has the commands that read or change what strait pinned in the kernel of this node,
// even without a daemon: bpf and opt-out.
//
// Inputs are flags and pins (packages below datapath/socklb); the daemon is asked only for names.
// Outputs are text and an exit code. It must not know Kubernetes or other nodes.
package kernel

import (
	"strait.io/strait/cli"
	"strait.io/strait/datapath/socklb/inspect"
)

// Kernel reads and changes pins, for the commands that need no daemon. Its fields are functions so
// that tests need no kernel.
type Kernel struct {
	Open         func(pins string) (PinnedMaps, error)
	OptOuts      func(pins string) (cgroups []string, err error)
	CheckOptOut  func(cgroup string) error
	AddOptOut    func(pins, cgroup string) error
	RemoveOptOut func(pins, cgroup string) error
}

// maps are the commands that read and change pins.
type maps struct {
	*cli.App
	kernel Kernel
}

// PinnedMaps reads the maps of one node. *inspect.Reader implements it. Rows are sorted.
type PinnedMaps interface {
	Services() ([]inspect.ServiceRow, error)
	Backends() ([]inspect.BackendRow, error)
	Slots() ([]inspect.SlotRow, error)
	Affinity() ([]inspect.AffinityRow, error)
	Sockets() ([]inspect.SocketRow, error)
	Close()
}
