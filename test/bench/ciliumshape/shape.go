// Package ciliumshape is a socket load balancer with the shape of Cilium's, for comparison with
// strait's in the same rounds. It is a look-alike: its maps have the layout that Cilium documents,
// its program makes the lookups of Cilium's connect4 hook, and it writes the maps in the order of
// Cilium's agent. It is not Cilium, contains none of its code, and does less: it has no affinity,
// no NodePorts, no IPv6, and no hooks but connect4 and sock_release.
//
// Input is the desired frontends, output is maps and programs on a cgroup. It must not know what is
// measured.
package ciliumshape

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"strait.io/strait/datapath"
)

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-mcpu=v3 -O2 -g -Wall -Wextra -Werror -fno-strict-aliasing" shape bpf/shape.bpf.c -- -I../../../bpf/include

// Config says where the programs are attached, and how large the maps are.
type Config struct {
	Cgroup string
	// Slots is the size of the map of services: one element for each service and each slot.
	Slots, Backends, Sockets uint32
	// Allocate makes the kernel allocate an element of a hash map when it is written. Otherwise all
	// elements are allocated beforehand. Cilium can be configured either way.
	Allocate bool
}

// LB is the balancer. Its programs run until it is closed. One goroutine may use it at a time.
type LB struct {
	agent   *agent
	objects shapeObjects
	links   []link.Link
}

// Open loads the programs and attaches them to the cgroup, with empty maps.
func Open(cfg Config) (*LB, error) {
	spec, err := loadShape()
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	for name, size := range map[string]uint32{"services": cfg.Slots, "backends": cfg.Backends, "reverses": cfg.Sockets} {
		m := spec.Maps[name]
		m.MaxEntries = size
		if cfg.Allocate && m.Type == ebpf.Hash {
			m.Flags |= allocate
		}
	}
	lb := &LB{agent: newAgent()}
	if err := spec.LoadAndAssign(&lb.objects, nil); err != nil {
		return nil, fmt.Errorf("load the look-alike: %w", err)
	}
	for at, p := range map[ebpf.AttachType]*ebpf.Program{
		ebpf.AttachCGroupInet4Connect:    lb.objects.ShapeConnect4,
		ebpf.AttachCgroupInetSockRelease: lb.objects.ShapeRelease,
	} {
		l, err := link.AttachCgroup(link.CgroupOptions{Path: cfg.Cgroup, Attach: at, Program: p})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("attach %v: %w", at, err), lb.Close())
		}
		lb.links = append(lb.links, l)
	}
	return lb, nil
}

// allocate is BPF_F_NO_PREALLOC of linux/bpf.h.
const allocate = 1

// Update brings the given frontends into force, one after the other. It leaves others alone.
func (lb *LB) Update(want []datapath.Frontend) error {
	for _, f := range want {
		for _, w := range lb.agent.change(f) {
			if err := lb.apply(w); err != nil {
				return fmt.Errorf("frontend %s: %w", f.Addr, err)
			}
		}
	}
	return nil
}

func (lb *LB) apply(w write) error {
	m := lb.objects.Services
	if w.in == inBackends {
		m = lb.objects.Backends
	}
	if w.value == nil {
		return m.Delete(w.key)
	}
	return m.Put(w.key, w.value)
}

// Close detaches the programs and frees the maps.
func (lb *LB) Close() error {
	var errs []error
	for _, l := range slices.Backward(lb.links) {
		errs = append(errs, l.Close())
	}
	return errors.Join(append(errs, lb.objects.Close())...)
}
