// Package belief decides whom a node trusts: every holder of the gossip key, or only pinned
// clusters; and how a cluster moves from the first to the second without cutting off a cluster.
//
// Inputs are the config, pins, files as text, the cluster's objects and the state; outputs are whom
// to trust, what is missing, and Problems. Pure. It must not know where files are, or how keys are made.
package belief

import (
	"strings"

	"strait.io/strait/internal/enum"
)

// Belief is which clusters a machine with pins trusts. The zero value is Pinned.
type Belief string

// The clusters that a machine trusts.
const (
	Pinned Belief = "pinned"
	// All: every holder of the gossip key, until all clusters sign.
	All Belief = "all"
)

// UnmarshalText accepts the names.
func (w *Belief) UnmarshalText(b []byte) error {
	return enum.Decode(w, b, Pinned, All)
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
func InForce(text string, unreadable error, last string) (b Belief, wrong error) {
	if unreadable == nil {
		b = Belief(strings.TrimSpace(text))
		if wrong = new(Belief).UnmarshalText([]byte(b)); wrong == nil && b != "" {
			return b, nil
		}
	}
	if Belief(strings.TrimSpace(last)) == Pinned {
		return Pinned, wrong
	}
	return All, wrong
}
