//go:build !linux

package kernel

import (
	"runtime"

	"strait.io/strait/cli"
)

// Real has no kernel to read: pins and cgroups are Linux's.
func Real() Kernel {
	needsNode := func() error { return cli.NeedsNode("strait opt-out", runtime.GOOS) }
	return Kernel{
		Open:         func(string) (PinnedMaps, error) { return nil, cli.NeedsNode("strait bpf", runtime.GOOS) },
		OptOuts:      func(string) ([]string, error) { return nil, needsNode() },
		CheckOptOut:  func(string) error { return needsNode() },
		AddOptOut:    func(string, string) error { return needsNode() },
		RemoveOptOut: func(string, string) error { return needsNode() },
	}
}
