package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// machine describes what the numbers depend on.
type machine struct {
	Kernel, CPU, Go, Nft string
	CPUs                 int
	// LoadBefore and LoadAfter are load averages over one minute. The bench itself causes about 1.
	LoadBefore, LoadAfter string
}

func thisMachine() machine {
	return machine{
		Kernel: firstLine("/proc/sys/kernel/osrelease"), CPU: cpuModel(), CPUs: runtime.NumCPU(),
		Go: runtime.Version(), Nft: nftVersion(), LoadBefore: loadAverage(),
	}
}

// String is the line above a table.
func (m machine) String() string {
	return fmt.Sprintf("Linux %s, %d × %s, %s, %s. Load average %s before, %s after (the bench itself makes about 1).",
		m.Kernel, m.CPUs, m.CPU, m.Go, m.Nft, m.LoadBefore, m.LoadAfter)
}

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

func loadAverage() string {
	load, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	return load
}

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func nftVersion() string {
	out, err := exec.Command("nft", "--version").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// raiseFileLimit raises the limit of open files, for a round's sockets.
func raiseFileLimit() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
}
