//go:build !linux

package main

import "runtime"

// realKernel has no kernel to read: pins and cgroups are Linux's.
func realKernel() kernel {
	change := func(string, string) error { return needsNode("strait opt-out", runtime.GOOS) }
	return kernel{
		open:         func(string) (pinnedMaps, error) { return nil, needsNode("strait bpf", runtime.GOOS) },
		optOuts:      func(string) ([]string, error) { return nil, needsNode("strait opt-out", runtime.GOOS) },
		checkOptOut:  func(string) error { return needsNode("strait opt-out", runtime.GOOS) },
		addOptOut:    change,
		removeOptOut: change,
		proxied:      func() bool { return false },
	}
}
