package scale

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// requests counts the requests by which a process programs the kernel: bpf system calls, and
// messages to netlink sockets. It counts at the kernel's tracepoint for all system calls, so
// nothing has to be installed, and the process does not notice.
type requests struct {
	counters *ebpf.Map
	closers  []interface{ Close() error }
}

// The counters.
const (
	countBPF = iota
	countNetlink
	countKinds
)

// arguments are the offsets in struct pt_regs of a system call's second and sixth argument.
var arguments = map[string][2]int32{"amd64": {104, 64}, "arm64": {8, 40}}

// msgNameLen is the offset of msg_namelen in struct msghdr. netlinkAddr is the size of struct
// sockaddr_nl, which no other address has.
const (
	msgNameLen  = 8
	netlinkAddr = 12
)

// countRequests starts to count the requests of all threads of a process.
func countRequests(pid int) (_ *requests, err error) {
	r := &requests{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("count requests to the kernel: %w", err), r.Close())
		}
	}()
	at, known := arguments[runtime.GOARCH]
	if !known {
		return nil, fmt.Errorf("read system call arguments on %s: the offsets in struct pt_regs are not known", runtime.GOARCH)
	}
	r.counters, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: countKinds})
	if err != nil {
		return nil, err
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.RawTracepoint, License: "GPL", Instructions: requestProgram(r.counters, int32(pid), at)})
	if err != nil {
		return nil, err
	}
	r.closers = append(r.closers, program)
	l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sys_enter", Program: program})
	if err != nil {
		return nil, err
	}
	r.closers = append(r.closers, l)
	return r, nil
}

// requestProgram returns the program's instructions. R6 holds the caller's registers.
func requestProgram(counters *ebpf.Map, pid int32, at [2]int32) (out asm.Instructions) {
	// read reads size bytes at R3 + offset to the stack.
	read := func(helper asm.BuiltinFunc, size, offset int32) asm.Instructions {
		return asm.Instructions{
			asm.Add.Imm(asm.R3, offset), asm.Mov.Imm(asm.R2, size),
			asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, -16), helper.Call(),
		}
	}
	add := func(parts ...asm.Instructions) {
		for _, p := range parts {
			out = append(out, p...)
		}
	}
	add(asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, 0, asm.DWord), asm.LoadMem(asm.R7, asm.R1, 8, asm.DWord),
		asm.FnGetCurrentPidTgid.Call(), asm.RSh.Imm(asm.R0, 32), asm.JNE.Imm(asm.R0, pid, "out"),
		asm.Mov.Imm(asm.R0, 0), asm.StoreMem(asm.RFP, -16, asm.R0, asm.DWord),
		asm.StoreImm(asm.RFP, -4, countBPF, asm.Word), asm.JEq.Imm(asm.R7, unix.SYS_BPF, "count"),
		asm.StoreImm(asm.RFP, -4, countNetlink, asm.Word),
		asm.JEq.Imm(asm.R7, unix.SYS_SENDMSG, "sendmsg"), asm.JNE.Imm(asm.R7, unix.SYS_SENDTO, "out"),
		asm.Mov.Reg(asm.R3, asm.R6),
	}, read(asm.FnProbeReadKernel, 4, at[1]), asm.Instructions{
		asm.Ja.Label("size"),
		asm.Mov.Reg(asm.R3, asm.R6).WithSymbol("sendmsg"),
	}, read(asm.FnProbeReadKernel, 8, at[0]), asm.Instructions{
		asm.LoadMem(asm.R3, asm.RFP, -16, asm.DWord), asm.Mov.Imm(asm.R0, 0), asm.StoreMem(asm.RFP, -16, asm.R0, asm.DWord),
	}, read(asm.FnProbeReadUser, 4, msgNameLen), asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, -16, asm.Word).WithSymbol("size"), asm.JNE.Imm(asm.R1, netlinkAddr, "out"),
		asm.LoadMapPtr(asm.R1, counters.FD()).WithSymbol("count"),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4), asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Imm(asm.R1, 1), asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"), asm.Return(),
	})
	return out
}

// total returns how many requests there have been so far.
func (r *requests) total() (sum uint64, err error) {
	for n := range uint32(countKinds) {
		var v uint64
		if err := r.counters.Lookup(n, &v); err != nil {
			return 0, fmt.Errorf("read counters of requests: %w", err)
		}
		sum += v
	}
	return sum, nil
}

// Close stops counting.
func (r *requests) Close() error {
	var errs []error
	for _, c := range r.closers {
		errs = append(errs, c.Close())
	}
	if r.counters != nil {
		errs = append(errs, r.counters.Close())
	}
	return errors.Join(errs...)
}
