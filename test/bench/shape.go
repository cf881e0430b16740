package main

import (
	"errors"

	"strait.io/strait/datapath"
	"strait.io/strait/test/bench/ciliumshape"
)

// shapePrefix begins the metrics of the look-alike of Cilium's balancer.
const shapePrefix = "cilium_shape_"

// shapeSockets is Cilium's default size of the map of sockets.
const shapeSockets = 256 << 10

// shapeOn opens the look-alike on a cgroup, with maps that have room for twice what is loaded.
func shapeOn(cgroup string, load []datapath.Frontend, allocate bool) (*ciliumshape.LB, error) {
	backends := 0
	for _, f := range load {
		backends += len(f.Backends)
	}
	lb, err := ciliumshape.Open(ciliumshape.Config{
		Cgroup: cgroup, Allocate: allocate,
		Slots: uint32(2 * (len(load) + backends)), Backends: uint32(2 * backends), Sockets: shapeSockets,
	})
	if err != nil {
		return nil, err
	}
	if err := lb.Update(load); err != nil {
		return nil, errors.Join(err, lb.Close())
	}
	return lb, nil
}

// shape opens the look-alike on its cgroup with a whole world. The returned function closes it.
func (b *bench) shape(w *world) (func() error, error) {
	lb, err := shapeOn(b.shaped, w.frontends, false)
	if err != nil {
		return nil, err
	}
	return lb.Close, nil
}
