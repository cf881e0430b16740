package main

import "strait.io/strait/datapath/socklb"

// kernel is where the commands that need no daemon read and change pins. Functions, so that tests need no
// kernel.
type kernel struct {
	open         func(pins string) (pinnedMaps, error)
	optOuts      func(pins string) (cgroups []string, err error)
	checkOptOut  func(cgroup string) error
	addOptOut    func(pins, cgroup string) error
	removeOptOut func(pins, cgroup string) error
}

// pinnedMaps are the maps of one node, open to be read. *socklb.Reader is the real one. Rows are sorted.
type pinnedMaps interface {
	Services() ([]socklb.ServiceRow, error)
	Backends() ([]socklb.BackendRow, error)
	Slots() ([]socklb.SlotRow, error)
	Affinity() ([]socklb.AffinityRow, error)
	Sockets() ([]socklb.SocketRow, error)
	Close()
}

func realKernel() kernel {
	return kernel{
		open:         func(pins string) (pinnedMaps, error) { return socklb.OpenReader(pins) },
		optOuts:      socklb.OptOuts,
		checkOptOut:  socklb.CheckOptOut,
		addOptOut:    socklb.AddOptOut,
		removeOptOut: socklb.RemoveOptOut,
	}
}
