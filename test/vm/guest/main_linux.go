// Command guest is the init process of a test VM. It mounts the file systems that tests need, loads
// the kernel modules in the initramfs, and runs the programs of its job one after another. It
// writes their output between marks to the second serial port, and powers the machine off.
//
// Input is the initramfs (see package job), output is /dev/ttyS1. It must not know what is tested.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/test/vm/job"
)

const (
	serialPort = "/dev/ttyS1"
	workArg    = "work"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == workArg {
		os.Exit(work())
	}
	// The init process only waits, so that it reaps every orphan: tests check whether a process is
	// gone, and one whose parent died first would otherwise stay a zombie.
	defer powerOff()
	if err := mountAll(); err != nil {
		fmt.Println("mount:", err) // to the console: without /dev there is no serial port
		return
	}
	c := exec.Command("/proc/self/exe", workArg)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Start(); err != nil {
		fmt.Println("start:", err)
		return
	}
	for {
		pid, err := unix.Wait4(-1, nil, 0, nil)
		if pid == c.Process.Pid || err == unix.ECHILD {
			return
		}
	}
}

// powerOff runs last, whatever happens: if the init process exits, the kernel panics.
func powerOff() {
	if r := recover(); r != nil {
		fmt.Println("panic:", r)
	}
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Println("power off:", err)
	}
	time.Sleep(time.Hour)
}

// work runs the job, writes its outcome and returns the exit code.
func work() int {
	port, err := openPort()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	out := &lines{w: port}
	code := 0
	if err := run(out); err != nil {
		out.line(job.NoteLine(err.Error()))
		code = 1
	}
	out.line(job.ExitLine(code))
	// Output that is not sent when the machine powers off is lost.
	if err := unix.IoctlSetInt(int(port.Fd()), unix.TCSBRK, 1); err != nil {
		fmt.Println("drain:", err)
	}
	return code
}

func run(out *lines) error {
	release, err := kernelRelease()
	if err != nil {
		return err
	}
	out.line(job.KernelLine(release))
	if err := errors.Join(manyFiles(), loopbackUp()); err != nil {
		return err
	}
	if err := loadModules(); err != nil {
		return err
	}
	b, err := os.ReadFile(job.File)
	if err != nil {
		return err
	}
	j, err := job.Decode(b)
	if err != nil {
		return err
	}
	failed := 0
	for _, p := range j.Programs {
		if !runProgram(p, out) {
			failed++
		}
	}
	if err := kernelWarnings(out); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d programs failed", failed, len(j.Programs))
	}
	return nil
}

// runProgram runs a program and reports whether it succeeded. Output is written as it comes: if the
// program hangs, it is the only thing to look at.
func runProgram(p job.Program, out *lines) bool {
	out.line(job.StartLine(p.Name))
	start := time.Now()
	c := exec.Command(p.Path, p.Args...)
	c.Dir, c.Stdout, c.Stderr = p.Dir, out, out
	c.Env = append([]string{"PATH=/bin:/sbin", "HOME=/tmp", "TMPDIR=/tmp"}, p.Env...)
	c.WaitDelay = 5 * time.Second // for the output of children that outlive it
	err := c.Run()
	code := 0
	if err != nil {
		code = 1
		fmt.Fprintf(out, "%s: %v\n", p.Name, err)
	}
	if c.ProcessState != nil && c.ProcessState.ExitCode() > 0 {
		code = c.ProcessState.ExitCode()
	}
	out.line(job.DoneLine(p.Name, code, time.Since(start).Seconds()))
	return code == 0
}

// lines writes each mark on a line of its own, even if a program's output did not end with a
// newline.
type lines struct {
	w    io.Writer
	open bool // the last byte written was not a newline
}

func (l *lines) Write(b []byte) (int, error) {
	if len(b) > 0 {
		l.open = b[len(b)-1] != '\n'
	}
	return l.w.Write(b)
}

func (l *lines) line(text string) {
	if l.open {
		text = "\n" + text
	}
	fmt.Fprintln(l, text)
}
