package socklb

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
)

// MinKernel is the oldest kernel version that has every required feature.
const MinKernel = "5.10"

// probe asks the running kernel which features it has. An error means that the kernel could not be
// asked, not that a feature is missing.
func probe() ([]datapath.Feature, error) {
	probes := []struct {
		datapath.Feature
		ask func() error
	}{
		{datapath.Feature{Name: "socket address hooks", Since: "4.17"}, haveHook(ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect)},
		{datapath.Feature{Name: "recvmsg hooks", Since: "5.2"}, haveHook(ebpf.CGroupSockAddr, ebpf.AttachCGroupUDP4Recvmsg)},
		{datapath.Feature{Name: "network namespace cookie in socket hooks", Since: "5.7"}, haveHelper(asm.FnGetNetnsCookie)},
		{datapath.Feature{Name: "ancestor cgroup id in socket hooks", Since: "5.7"}, haveHelper(asm.FnGetCurrentAncestorCgroupId, asm.Mov.Imm(asm.R1, 0))},
		{datapath.Feature{Name: "mmapable maps", Since: "5.5"}, func() error { return features.HaveMapFlag(features.BPF_F_MMAPABLE) }},
		{datapath.Feature{Name: "getpeername hooks", Since: "5.8"}, haveHook(ebpf.CGroupSockAddr, ebpf.AttachCgroupInet4GetPeername)},
		{datapath.Feature{Name: "socket release hook", Since: "5.9"}, haveHook(ebpf.CGroupSock, ebpf.AttachCgroupInetSockRelease)},
		{datapath.Feature{Name: featureSetRetval, Since: "6.1",
			Without: "a frontend without backends refuses by redirecting to loopback port 0, and a datagram to it fails with EINVAL"},
			haveHelper(asm.FnSetRetval, asm.Mov.Imm(asm.R1, -1))},
		{datapath.Feature{Name: featureMPTCP, Since: "5.19",
			Without: "getpeername() on an MPTCP socket shows the backend, and its record stays at home until the next sweep"},
			haveHelper(asm.FnSkcToMptcpSock, asm.LoadMem(asm.R1, asm.R1, offsetSock, asm.DWord))},
		{datapath.Feature{Name: featureFirst, Since: "6.17",
			Without: "where another project's socket load balancer was attached first, strait also attaches to the cgroups below, and processes in none of them are left to the other one"}, haveFirst},
		{datapath.Feature{Name: featureMembarrier, Since: "4.3",
			Without: "grace periods are awaited by replacing a map in a map"}, haveMembarrier},
	}
	var out []datapath.Feature
	for _, p := range probes {
		err := p.ask()
		if err != nil && !errors.Is(err, ebpf.ErrNotSupported) {
			return nil, fmt.Errorf("probe %s: %w", p.Name, layout.Explain(err))
		}
		p.OK = err == nil
		out = append(out, p.Feature)
	}
	return out, nil
}

// offsetSock is the offset of sk in struct bpf_sock_addr.
const offsetSock = 64

const (
	featureSetRetval  = "bpf_set_retval in socket hooks"
	featureMPTCP      = "MPTCP sockets in socket hooks"
	featureFirst      = "places in front of other programs on a cgroup"
	featureMembarrier = "global membarrier"
)

// required returns an error if the kernel lacks a feature that strait cannot do without.
func required(fs []datapath.Feature) error {
	var lacks []string
	for _, f := range fs {
		if !f.OK && f.Without == "" {
			lacks = append(lacks, fmt.Sprintf("%s (since Linux %s)", f.Name, f.Since))
		}
	}
	if lacks == nil {
		return nil
	}
	return fmt.Errorf("kernel %s lacks %s: strait needs Linux %s or newer", release(), strings.Join(lacks, ", "), MinKernel)
}

func has(fs []datapath.Feature, name string) bool {
	for _, f := range fs {
		if f.Name == name {
			return f.OK
		}
	}
	return false
}

// haveHook asks for a hook by loading the smallest program for it.
func haveHook(t ebpf.ProgramType, at ebpf.AttachType) func() error {
	return func() error { return loads(t, at) }
}

// haveHelper asks for a helper by loading a program that calls it as ours do. Some kernels refuse a
// call with made-up arguments in the same way in which others say that there is no such helper.
func haveHelper(fn asm.BuiltinFunc, arguments ...asm.Instruction) func() error {
	return func() error {
		return loads(ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect, append(arguments, fn.Call())...)
	}
}

// loads checks that the kernel accepts a program for a hook that runs the instructions and lets the
// call pass; ErrNotSupported if not.
func loads(t ebpf.ProgramType, at ebpf.AttachType, instructions ...asm.Instruction) error {
	p, err := ebpf.NewProgram(smallest(t, at, instructions...))
	if errors.Is(err, unix.EINVAL) {
		return ebpf.ErrNotSupported
	}
	if err != nil {
		return err
	}
	return p.Close()
}

// smallest is a program that runs the instructions and lets the call pass.
func smallest(t ebpf.ProgramType, at ebpf.AttachType, instructions ...asm.Instruction) *ebpf.ProgramSpec {
	return &ebpf.ProgramSpec{
		Name: "probe", Type: t, AttachType: at, License: "Dual BSD/GPL",
		Instructions: append(instructions, asm.Mov.Imm(asm.R0, 1), asm.Return()),
	}
}

// haveMembarrier asks for the list of commands. Calling the command would wait for a grace period.
func haveMembarrier() error {
	commands, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierQuery, 0, 0)
	if errno != 0 || commands&membarrierGlobal == 0 {
		return ebpf.ErrNotSupported
	}
	return nil
}

// haveFirst asks for BPF_F_BEFORE in links of cgroups by attaching a program to something that is
// no cgroup: the kernel looks at the flags first. Since Linux 6.17, commit 1209339844601.
func haveFirst() error {
	p, err := ebpf.NewProgram(smallest(ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect))
	if err != nil {
		return err
	}
	defer p.Close()
	none, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer none.Close()
	_, err = link.AttachRawLink(link.RawLinkOptions{
		Target: int(none.Fd()), Program: p, Attach: ebpf.AttachCGroupInet4Connect, Flags: unix.BPF_F_BEFORE,
	})
	switch {
	case errors.Is(err, unix.EBADF):
		return nil
	case errors.Is(err, unix.EINVAL):
		return ebpf.ErrNotSupported
	}
	return fmt.Errorf("attach to what is no cgroup: %w", err)
}

// permitted returns an error if the process may not use BPF. It is checked first, because without
// that permission everything else fails too, and less clearly.
func permitted() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	has := func(c int) bool { return data[c/32].Effective&(1<<(c%32)) != 0 }
	if has(unix.CAP_SYS_ADMIN) || has(unix.CAP_BPF) && has(unix.CAP_NET_ADMIN) && has(unix.CAP_PERFMON) {
		return nil
	}
	return layout.Explain(unix.EPERM)
}

func release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
