// Package trustlevel decides whom a node trusts: every holder of the gossip key, or only pinned
// clusters; and how a cluster moves from the first to the second without cutting off a cluster.
//
// Inputs are the config, pins, files as text, the cluster's objects and the state; outputs are whom
// to trust, what is missing, and Problems. Pure. It must not know where files are, or how keys are made.
package trustlevel

import (
	"strings"

	"strait.io/strait/internal/enum"
)

// Level is which clusters a machine with pins trusts. The zero value is Pinned.
type Level string

// The clusters that a machine trusts.
const (
	Pinned Level = "pinned"
	// All: every holder of the gossip key, until all clusters sign.
	All Level = "all"
)

// UnmarshalText accepts the names.
func (l *Level) UnmarshalText(b []byte) error {
	return enum.Decode(l, b, Pinned, All)
}

// Config is the part of the daemon's config about trust.
type Config struct {
	// Off: every holder of the gossip key shall be trusted. Signs: this cluster has keys or pins.
	Off, Signs bool
	// Pins: there is a file with pins. All: every holder of the gossip key is trusted in spite of pins. Later:
	// a file can restrict trust to the pins while the daemon runs.
	Pins, All, Later bool
	// Make: the leader makes what the cluster lacks.
	Make bool
}

// InForce returns whom to trust by the text of believeFile, now or last; wrong is why it cannot be used.
func InForce(text string, unreadable error, last string) (l Level, wrong error) {
	if unreadable == nil {
		l = Level(strings.TrimSpace(text))
		if wrong = new(Level).UnmarshalText([]byte(l)); wrong == nil && l != "" {
			return l, nil
		}
	}
	if Level(strings.TrimSpace(last)) == Pinned {
		return Pinned, wrong
	}
	return All, wrong
}
