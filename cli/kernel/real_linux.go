package kernel

import (
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/optout"
)

// Real is this machine's kernel.
func Real() Kernel {
	return Kernel{
		Open:         func(pins string) (PinnedMaps, error) { return inspect.OpenReader(pins) },
		OptOuts:      optout.List,
		CheckOptOut:  optout.Check,
		AddOptOut:    optout.Add,
		RemoveOptOut: optout.Remove,
	}
}
