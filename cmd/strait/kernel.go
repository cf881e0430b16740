package main

import (
	"fmt"

	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath/socklb/inspect"
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

// proxyPort is where kube-proxy, and what replaces it, tells load balancers that it works.
const proxyPort = "10256"

// needsNode returns why a command cannot work on this machine, whose system is not Linux.
func needsNode(command, system string) *api.Failure {
	return &api.Failure{Reason: api.NoAnswer,
		Message: fmt.Sprintf("%s needs a Linux node, and this machine runs %s", command, system),
		Try:     fmt.Sprintf("run it on a node, or in the pod of a node's daemon: kubectl -n strait-system exec ds/strait -- /%s", command)}
}
