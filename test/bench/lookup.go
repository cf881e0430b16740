package main

import (
	"fmt"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// Offsets in struct bpf_sock_addr.
const (
	sockAddrIP4      = 4
	sockAddrPort     = 24
	sockAddrProtocol = 36
)

// lookupProgram attaches a program to the cgroup b.lookup that does nothing but look up where a
// socket dials in strait's map of services: the unit in which hooks are measured. It stays attached
// until the returned function is called.
func (b *bench) lookupProgram(at ebpf.AttachType) (func() error, error) {
	services, err := ebpf.LoadPinnedMap(filepath.Join(b.pins, "strait", "services"), nil)
	if err != nil {
		return nil, err
	}
	defer services.Close()
	const key = -24 // struct service_key on the stack
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "lookup", Type: ebpf.CGroupSockAddr, AttachType: at, License: "GPL",
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R2, 0),
			asm.StoreMem(asm.RFP, key, asm.R2, asm.DWord),
			asm.Mov.Imm(asm.R2, -0x10000), // ::ffff:0:0/96, network byte order
			asm.StoreMem(asm.RFP, key+8, asm.R2, asm.Word),
			asm.LoadMem(asm.R2, asm.R1, sockAddrIP4, asm.Word),
			asm.StoreMem(asm.RFP, key+12, asm.R2, asm.Word),
			asm.LoadMem(asm.R2, asm.R1, sockAddrPort, asm.Word),
			asm.StoreMem(asm.RFP, key+16, asm.R2, asm.Half),
			asm.LoadMem(asm.R2, asm.R1, sockAddrProtocol, asm.Word),
			asm.StoreMem(asm.RFP, key+18, asm.R2, asm.Half),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, key),
			asm.LoadMapPtr(asm.R1, services.FD()),
			asm.FnMapLookupElem.Call(),
			asm.Mov.Imm(asm.R0, 1),
			asm.Return(),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("load the lookup: %w", err)
	}
	defer program.Close()
	l, err := link.AttachCgroup(link.CgroupOptions{Path: b.lookup, Attach: at, Program: program})
	if err != nil {
		return nil, fmt.Errorf("attach the lookup: %w", err)
	}
	return l.Close, nil
}
