package main

import (
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/optout"
)

// kernel is where the commands that need no daemon read and change pins. Functions, so that tests need no
// kernel.
type kernel struct {
	open         func(pins string) (pinnedMaps, error)
	optOuts      func(pins string) (cgroups []string, err error)
	checkOptOut  func(cgroup string) error
	addOptOut    func(pins, cgroup string) error
	removeOptOut func(pins, cgroup string) error
}

// pinnedMaps are the maps of one node, open to be read. *inspect.Reader is the real one. Rows are sorted.
type pinnedMaps interface {
	Services() ([]inspect.ServiceRow, error)
	Backends() ([]inspect.BackendRow, error)
	Slots() ([]inspect.SlotRow, error)
	Affinity() ([]inspect.AffinityRow, error)
	Sockets() ([]inspect.SocketRow, error)
	Close()
}

func realKernel() kernel {
	return kernel{
		open:         func(pins string) (pinnedMaps, error) { return inspect.OpenReader(pins) },
		optOuts:      optout.List,
		checkOptOut:  optout.Check,
		addOptOut:    optout.Add,
		removeOptOut: optout.Remove,
	}
}
