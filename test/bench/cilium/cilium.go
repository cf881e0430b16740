// Package cilium runs the socket load balancer of Cilium itself, to compare it with strait's in the
// same rounds. The programs and maps are those of Cilium's bpf/bpf_sock.c, from its Go module,
// compiled and attached as its agent does it. Nothing of Cilium is in this repository.
//
// Cilium's agent is not used. In its place, this package writes the maps: the same elements, in the
// order of its reconciler. It does so whenever it is told; how often the agent would do it is not
// represented here.
//
// Input is the desired frontends, output is maps and programs on a cgroup. It must not know what is
// measured.
package cilium

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"strait.io/strait/datapath"
)

// Sockets is the size of the map of sockets, which is the agent's default where it does not choose
// one by the machine's memory.
const Sockets = 256 << 10

// Config says where the programs are attached, and how large the maps are.
type Config struct {
	// Object is the path of the compiled bpf_sock.o.
	Object, Cgroup string
	// Slots is the size of the map of services: one element for each service and each slot.
	Slots, Backends uint32
	// Preallocate is Helm's bpf.preallocateMaps. The default is false: the kernel allocates an element
	// of a hash map when it is written.
	Preallocate bool
}

// LB is the balancer. Its programs run until it is closed. One goroutine may use it at a time.
type LB struct {
	agent   *agent
	objects *ebpf.Collection
	links   []link.Link
}

// hooks are those that Cilium's pkg/socketlb attaches with kube-proxy replacement and IPv4. The IPv6
// hooks serve v4-mapped addresses.
var hooks = map[string]ebpf.AttachType{
	"cil_sock4_connect":     ebpf.AttachCGroupInet4Connect,
	"cil_sock4_sendmsg":     ebpf.AttachCGroupUDP4Sendmsg,
	"cil_sock4_recvmsg":     ebpf.AttachCGroupUDP4Recvmsg,
	"cil_sock4_getpeername": ebpf.AttachCgroupInet4GetPeername,
	"cil_sock4_post_bind":   ebpf.AttachCGroupInet4PostBind,
	"cil_sock6_connect":     ebpf.AttachCGroupInet6Connect,
	"cil_sock6_sendmsg":     ebpf.AttachCGroupUDP6Sendmsg,
	"cil_sock6_recvmsg":     ebpf.AttachCGroupUDP6Recvmsg,
	"cil_sock6_getpeername": ebpf.AttachCgroupInet6GetPeername,
	"cil_sock6_post_bind":   ebpf.AttachCGroupInet6PostBind,
	"cil_sock_release":      ebpf.AttachCgroupInetSockRelease,
}

// variables are the settings that Cilium's agent gives the programs when it loads them, where they
// differ from those in the object.
var variables = map[string]any{
	"nodeport_port_min": uint16(30000), "nodeport_port_max": uint16(32767), "enable_no_service_endpoints_routable": true,
}

// noPrealloc is BPF_F_NO_PREALLOC of linux/bpf.h.
const noPrealloc = 1

// Open loads the programs and attaches them to the cgroup, with empty maps.
func Open(cfg Config) (*LB, error) {
	spec, err := specOf(cfg)
	if err != nil {
		return nil, err
	}
	lb := &LB{agent: newAgent()}
	if lb.objects, err = ebpf.NewCollection(spec); err != nil {
		return nil, fmt.Errorf("load Cilium's programs: %w", err)
	}
	for name, at := range hooks {
		l, err := link.AttachCgroup(link.CgroupOptions{Path: cfg.Cgroup, Attach: at, Program: lb.objects.Programs[name]})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("attach %s: %w", name, err), lb.Close())
		}
		lb.links = append(lb.links, l)
	}
	return lb, nil
}

// specOf reads the object, sets the sizes of its maps and the variables of its programs, and leaves
// out what is not used here, as Cilium's loader does.
func specOf(cfg Config) (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpec(cfg.Object)
	if err != nil {
		return nil, fmt.Errorf("read Cilium's object: %w", err)
	}
	for name, value := range variables {
		v := spec.Variables["__config_"+name]
		if v == nil {
			return nil, fmt.Errorf("the object of Cilium %s has no variable %s", Version, name)
		}
		if err := v.Set(value); err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
	}
	used := map[string]bool{}
	for name, p := range spec.Programs {
		if _, ok := hooks[name]; !ok {
			delete(spec.Programs, name)
			continue
		}
		for _, in := range p.Instructions {
			used[in.Reference()] = true
		}
	}
	for _, name := range mapNames {
		used[name] = true
	}
	sizes := map[string]uint32{mapNames[inServices]: cfg.Slots, mapNames[inBackends]: cfg.Backends}
	for name, m := range spec.Maps {
		if !used[name] && !strings.HasPrefix(name, ".") {
			delete(spec.Maps, name)
			continue
		}
		m.Pinning = ebpf.PinNone
		if n := sizes[name]; n > 0 {
			m.MaxEntries = n
		}
		if cfg.Preallocate && m.Type == ebpf.Hash {
			m.Flags &^= noPrealloc
		}
	}
	return spec, nil
}

// Update brings the given frontends into force, one after the other. It leaves others alone.
// Backends that are not in them any more leave at once.
func (lb *LB) Update(want []datapath.Frontend) error {
	for _, f := range want {
		if err := lb.apply(lb.agent.change(state{frontend: f})); err != nil {
			return fmt.Errorf("frontend %s: %w", f.Addr, err)
		}
	}
	return nil
}

// UpdateGracefully does the same, but backends that leave are terminating first, as pods are.
func (lb *LB) UpdateGracefully(want []datapath.Frontend) error {
	var between []state
	for _, f := range want {
		if s := lb.agent.services[f.Addr]; s != nil {
			between = append(between, s.state.without(f))
		}
	}
	for _, s := range between {
		if err := lb.apply(lb.agent.change(s)); err != nil {
			return fmt.Errorf("frontend %s: %w", s.frontend.Addr, err)
		}
	}
	return lb.Update(want)
}

func (lb *LB) apply(writes []write) error {
	for _, w := range writes {
		m := lb.objects.Maps[mapNames[w.in]]
		if w.value != nil {
			if err := m.Put(w.key, w.value); err != nil {
				return err
			}
			continue
		}
		err := m.Delete(w.key)
		if err != nil && (w.in != inAffinity || !errors.Is(err, ebpf.ErrKeyNotExist)) {
			return err
		}
	}
	return nil
}

// Close detaches the programs and frees the maps.
func (lb *LB) Close() error {
	var errs []error
	for _, l := range slices.Backward(lb.links) {
		errs = append(errs, l.Close())
	}
	lb.objects.Close()
	return errors.Join(errs...)
}
