package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"strait.io/strait/datapath/socklb/layout"
)

// floorPrefix begins the metrics of the smallest program that balances.
const floorPrefix = "floor_"

// Offsets in struct bpf_sock_addr.
const (
	sockAddrIP4      = 4
	sockAddrPort     = 24
	sockAddrProtocol = 36
)

// Places on the stack of the programs: a struct service_key, and an index of an array.
const (
	stackKey   = -24
	stackIndex = -28
)

// lookupProgram attaches a program to the cgroup b.lookup that does nothing but look up where a
// socket dials in strait's map of services: the unit in which hooks are measured. It stays attached
// until the returned function is called.
func (b *bench) lookupProgram(at ebpf.AttachType) (func() error, error) {
	return b.attachCode("lookup", b.lookup, at, func(m balancerMaps) asm.Instructions {
		return append(lookUpService(m), pass()...)
	})
}

// floorProgram attaches the smallest program that sends a socket to a backend to the cgroup b.floor:
// it looks up the frontend, its set and a slot in strait's own maps, picks the slot by the socket's
// cookie, and changes the address. It remembers nothing, so replies and getpeername() would be wrong.
// It counts nothing, knows no opt-out, affinity or weights, and serves only IPv4.
func (b *bench) floorProgram(at ebpf.AttachType) (func() error, error) {
	return b.attachCode("floor", b.floor, at, floorCode)
}

type balancerMaps struct{ services, sets, backends *ebpf.Map }

// attachCode attaches a program whose code uses the maps of the balancer that is open.
func (b *bench) attachCode(name, cgroup string, at ebpf.AttachType, code func(balancerMaps) asm.Instructions) (func() error, error) {
	var m balancerMaps
	for file, to := range map[string]**ebpf.Map{"services": &m.services, "sets": &m.sets, "backends": &m.backends} {
		opened, err := ebpf.LoadPinnedMap(filepath.Join(b.pins, "strait", file), nil)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		*to = opened
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: name, Type: ebpf.CGroupSockAddr, AttachType: at, License: "GPL", Instructions: code(m),
	})
	if err != nil {
		return nil, fmt.Errorf("load the program %s: %w", name, err)
	}
	defer program.Close()
	l, err := link.AttachCgroup(link.CgroupOptions{Path: cgroup, Attach: at, Program: program})
	if err != nil {
		return nil, fmt.Errorf("attach the program %s: %w", name, err)
	}
	return l.Close, nil
}

// lookUpService leaves the element of the frontend that is dialled in R0, and the context in R6.
func lookUpService(m balancerMaps) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.Mov.Imm(asm.R2, 0),
		asm.StoreMem(asm.RFP, stackKey, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R2, -0x10000), // ::ffff:0:0/96, network byte order
		asm.StoreMem(asm.RFP, stackKey+8, asm.R2, asm.Word),
		asm.LoadMem(asm.R2, asm.R1, sockAddrIP4, asm.Word),
		asm.StoreMem(asm.RFP, stackKey+12, asm.R2, asm.Word),
		asm.LoadMem(asm.R2, asm.R1, sockAddrPort, asm.Word),
		asm.StoreMem(asm.RFP, stackKey+16, asm.R2, asm.Half),
		asm.LoadMem(asm.R2, asm.R1, sockAddrProtocol, asm.Word),
		asm.StoreMem(asm.RFP, stackKey+18, asm.R2, asm.Half),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackKey),
		asm.LoadMapPtr(asm.R1, m.services.FD()),
		asm.FnMapLookupElem.Call(),
	}
}

// lookUpIndex looks up the index in R0 in an array, and leaves the element in R0.
func lookUpIndex(array *ebpf.Map) asm.Instructions {
	return asm.Instructions{
		asm.StoreMem(asm.RFP, stackIndex, asm.R0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackIndex),
		asm.LoadMapPtr(asm.R1, array.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"),
	}
}

func pass() asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, 1).WithSymbol("pass"), asm.Return()}
}

func floorCode(m balancerMaps) asm.Instructions {
	code := append(lookUpService(m),
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.LoadMem(asm.R0, asm.R0, int16(unsafe.Offsetof(layout.Service{}.Index)), asm.Word),
	)
	code = append(code, lookUpIndex(m.sets)...)
	code = append(code,
		asm.LoadMem(asm.R7, asm.R0, int16(unsafe.Offsetof(layout.Set{}.Count)), asm.Word),
		asm.LoadMem(asm.R8, asm.R0, int16(unsafe.Offsetof(layout.Set{}.Base)), asm.Word),
		asm.JEq.Imm(asm.R7, 0, "pass"),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.FnGetSocketCookie.Call(),
		asm.Mul.Imm(asm.R0, 0x61c88647), // spreads cookies, which count up
		asm.RSh.Imm(asm.R0, 16),
		asm.Mod.Reg32(asm.R0, asm.R7),
		asm.Add.Reg(asm.R0, asm.R8),
	)
	code = append(code, lookUpIndex(m.backends)...)
	const ipv4 = int16(unsafe.Offsetof(layout.Backend{}.Addr)) + 12
	code = append(code,
		asm.LoadMem(asm.R1, asm.R0, ipv4, asm.Word),
		asm.StoreMem(asm.R6, sockAddrIP4, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R0, int16(unsafe.Offsetof(layout.Backend{}.Port)), asm.Half),
		asm.StoreMem(asm.R6, sockAddrPort, asm.R1, asm.Word),
	)
	return append(code, pass()...)
}

// alongside attaches the unit and the floor. The returned function detaches both.
func (b *bench) alongside(at ebpf.AttachType) (func() error, error) {
	unlook, err := b.lookupProgram(at)
	if err != nil {
		return nil, err
	}
	unfloor, err := b.floorProgram(at)
	if err != nil {
		return nil, errors.Join(err, unlook())
	}
	return func() error { return errors.Join(unfloor(), unlook()) }, nil
}
