package main

import (
	"net"
	"time"

	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/optout"
)

// kernel reads and changes pins, for the commands that need no daemon. Its fields are functions so
// that tests need no kernel.
type kernel struct {
	open         func(pins string) (pinnedMaps, error)
	optOuts      func(pins string) (cgroups []string, err error)
	checkOptOut  func(cgroup string) error
	addOptOut    func(pins, cgroup string) error
	removeOptOut func(pins, cgroup string) error
	// proxied reports whether kube-proxy runs on this node.
	proxied func() bool
}

// pinnedMaps reads the maps of one node. *inspect.Reader implements it. Rows are sorted.
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
		proxied:      proxied,
	}
}

// proxyPort is where kube-proxy, and what replaces it, tells load balancers that it works.
const proxyPort = "10256"

func proxied() bool {
	c, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", proxyPort), time.Second)
	if err == nil {
		c.Close()
	}
	return err == nil
}
