package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"strait.io/strait/test/vm/initrd"
	"strait.io/strait/test/vm/job"
	"strait.io/strait/test/vm/kernels"
	"strait.io/strait/test/vm/result"
)

const qemu = "qemu-system-x86_64"

// modules are the kernel modules that the tests need besides those that Debian builds in. A module
// without a file is built in or missing; a test that needs a missing one reports it.
var modules = []string{
	"wireguard", "veth", "bridge", "tun", "dummy", // links
	"tcp_diag", "udp_diag", // destroy sockets by netlink
	"sch_ingress", "cls_bpf", "sch_netem", // traffic control
	"ip_vs", "ip_vs_rr", // kube-proxy's IPVS mode, in the benchmark
	"nf_tables", "nft_chain_nat", "nft_nat", "nft_masq", "nft_ct", "nft_counter", // masquerade, filter
}

// machine is one VM.
type machine struct {
	kernel  kernels.Kernel
	cargo   *cargo
	dir     string
	options options
}

// run boots the VM and waits until it ends. Failures are reported in the result.
func (m machine) run(ctx context.Context) result.Machine {
	start := time.Now()
	out := result.Machine{Kernel: m.kernel.Version}
	fail := func(err error) result.Machine {
		out.Seconds = time.Since(start).Seconds()
		out.Problem = err.Error()
		return out
	}
	initramfs, absent, err := m.initramfs(ctx)
	if err != nil {
		return fail(err)
	}
	serial, console, processor, bootErr := m.boot(ctx, initramfs)
	out.Seconds, out.Processor = time.Since(start).Seconds(), processor.Seconds()
	report := job.Parse(serial)
	out.Notes = report.Notes
	if len(absent) > 0 {
		out.Notes = append(out.Notes, "modules without a file (built in or missing): "+strings.Join(absent, " "))
	}
	for _, r := range report.Runs {
		p, err := m.read(context.WithoutCancel(ctx), r) // also report an interrupted run
		if err != nil {
			return fail(err)
		}
		out.Packages = append(out.Packages, p)
	}
	out.Problem = problem(report, m.cargo.job, bootErr, console)
	return out
}

// problem returns why the VM as a whole failed; "" if it did not. QEMU's exit status does not help:
// after a panic it is 0.
func problem(r job.Report, j job.Job, bootErr error, console string) string {
	switch {
	case bootErr != nil:
		return fmt.Sprintf("%v; the end of the console's output:\n%s", bootErr, tail(console))
	case !r.Ended:
		return "the guest did not finish: it panicked or hung; the end of the console's output:\n" + tail(console)
	case len(r.Runs) != len(j.Programs):
		return fmt.Sprintf("%d of %d programs ran: %s", len(r.Runs), len(j.Programs), strings.Join(r.Notes, "; "))
	}
	// If a program failed, its tests report why. Otherwise the guest itself failed.
	if r.Exit != 0 && !slices.ContainsFunc(r.Runs, func(run job.Run) bool { return run.Exit != 0 }) {
		return "the guest failed: " + strings.Join(r.Notes, "; ")
	}
	return ""
}

// initramfs writes a file with two archives: the kernel's modules, then the cargo.
func (m machine) initramfs(ctx context.Context) (file string, absent []string, err error) {
	order, absent, err := initrd.Modules(modules, func(name string) ([]byte, error) { return m.kernel.Module(ctx, name) })
	if err != nil {
		return "", nil, err
	}
	var a initrd.Archive
	for i, mod := range order {
		a.File(fmt.Sprintf("%s/%03d-%s.ko", job.Modules[1:], i, mod.Name), mod.Data)
	}
	file = m.file("cpio")
	return file, absent, os.WriteFile(file, append(a.Bytes(), m.cargo.archive...), 0o600)
}

func (m machine) file(kind string) string {
	return filepath.Join(m.dir, m.kernel.Version+"-"+m.kernel.Series+"."+kind)
}

// noTimerCheck has the kernel trust its timer. It counts interrupts at its start otherwise, and panics if an
// emulated machine, on a host that is busy, got none for a moment.
const noTimerCheck = "no_timer_check"

// boot runs the VM. It returns what the guest wrote to the second serial port and to the console,
// and the processor time that QEMU took.
func (m machine) boot(ctx context.Context, initramfs string) (serial, console string, processor time.Duration, err error) {
	limit, cancel := context.WithTimeout(ctx, m.options.limit)
	defer cancel()
	c := exec.CommandContext(limit, qemu, "-accel", m.options.accel, "-cpu", "max", "-m", "1024", "-smp", strconv.Itoa(m.options.cpus),
		"-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio", "-serial", "file:"+m.file("serial"),
		"-kernel", m.kernel.Image, "-initrd", initramfs,
		"-append", "console=ttyS0 panic=-1 oops=panic quiet loglevel=3 "+noTimerCheck)
	var con bytes.Buffer
	c.Stdout, c.Stderr = &con, &con
	err = c.Run()
	if c.ProcessState != nil {
		processor = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	if errors.Is(limit.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("the VM did not end within %v", m.options.limit)
	} else if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	text, readErr := os.ReadFile(m.file("serial"))
	if errors.Is(readErr, os.ErrNotExist) {
		readErr = nil // QEMU did not start, and err says why
	}
	err = errors.Join(err, readErr, m.keep(con.Bytes(), text), os.Remove(initramfs))
	return string(text), strings.ReplaceAll(con.String(), "\r", ""), processor, err
}

// keep writes the VM's output to the folder given by -keep, if any.
func (m machine) keep(console, serial []byte) error {
	if m.options.keep == "" {
		return nil
	}
	base := filepath.Join(m.options.keep, m.kernel.Version)
	return errors.Join(os.MkdirAll(m.options.keep, 0o755),
		os.WriteFile(base+".console", console, 0o644), os.WriteFile(base+".serial", serial, 0o644))
}

// read evaluates the test output of one program.
func (m machine) read(ctx context.Context, r job.Run) (result.Package, error) {
	c := exec.CommandContext(ctx, "go", "tool", "test2json", "-p", r.Name)
	c.Stdin = strings.NewReader(r.Output)
	var said bytes.Buffer
	c.Stderr = &said
	events, err := c.Output()
	if err != nil {
		return result.Package{}, fmt.Errorf("go tool test2json: %w: %s", err, said.String())
	}
	p, err := result.ReadPackage(r.Name, string(events), r.Done, r.Exit)
	p.Seconds = r.Seconds
	return p, err
}

// tail returns the last lines of a text, indented.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if n := len(lines); n > 30 {
		lines = lines[n-30:]
	}
	return "  " + strings.Join(lines, "\n  ")
}
