package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// emptyProgram attaches a program that only returns 1: the minimum cost of any program.
func (p *place) emptyProgram(name, cgroup string, kind ebpf.ProgramType, at ebpf.AttachType) error {
	return p.attach(cgroup, &ebpf.ProgramSpec{
		Name: name, Type: kind, AttachType: at, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()},
	})
}

// attach loads a program, attaches it and pins its link, so that it stays attached while the
// process lives.
func (p *place) attach(cgroup string, spec *ebpf.ProgramSpec) error {
	program, err := ebpf.NewProgram(spec)
	if err != nil {
		return fmt.Errorf("load %s: %w", spec.Name, err)
	}
	defer program.Close()
	l, err := link.AttachCgroup(link.CgroupOptions{Path: cgroup, Attach: spec.AttachType, Program: program})
	if err != nil {
		return fmt.Errorf("attach %s: %w", spec.Name, err)
	}
	defer l.Close()
	return l.Pin(filepath.Join(p.pins, spec.Name))
}

// onlyProgram returns the only program that is attached to a cgroup at a hook.
func onlyProgram(cgroup string, at ebpf.AttachType) (*ebpf.Program, error) {
	dir, err := os.Open(cgroup)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	on, err := link.QueryPrograms(link.QueryOptions{Target: int(dir.Fd()), Attach: at})
	if err != nil {
		return nil, err
	}
	if len(on.Programs) != 1 {
		return nil, fmt.Errorf("%d programs at %v of %s, want 1", len(on.Programs), at, cgroup)
	}
	return ebpf.NewProgramFromID(on.Programs[0].ID)
}

// countRunTime makes the kernel measure the run time of every program, until the returned function
// is called.
func countRunTime() (func() error, error) {
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return nil, fmt.Errorf("enable run time statistics of programs: %w", err)
	}
	return stats.Close, nil
}

// perRun returns the mean run time of a program, in ns, while f makes it run.
func perRun(p *ebpf.Program, f func() error) (float64, error) {
	before, err := p.Stats()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := p.Stats()
	if err != nil {
		return 0, err
	}
	runs := after.RunCount - before.RunCount
	if runs == 0 {
		return 0, errors.New("the program did not run: is it attached?")
	}
	return ns(after.Runtime-before.Runtime) / float64(runs), nil
}
