// Package belief decides whom a node believes: everybody who has the gossip key, or only pinned
// clusters; and how a cluster gets from the one to the other without cutting anybody off.
//
// Inputs are the config, pins, files as text, the cluster's objects and the state; outputs are whom to
// believe, what is missing, and Problems. Pure. It must not know where files are, or how keys are made.
package belief

import (
	"strings"

	"strait.io/strait/internal/enum"
)

// Belief says whose word counts for a machine that has pins. The zero value is Pinned.
type Belief string

// Whose word counts.
const (
	Pinned Belief = "pinned"
	// All: everybody who has the gossip key is believed, until all clusters sign.
	All Belief = "all"
)

// UnmarshalText accepts the names.
func (w *Belief) UnmarshalText(b []byte) error {
	return enum.Decode(w, b, Pinned, All)
}

// Config is what the daemon's config says of whom to believe.
type Config struct {
	// Off: everybody shall be believed. Signs: this cluster has keys or pins.
	Off, Signs bool
	// Pins: there is a file with pins. All: everybody is believed although there are pins. Later: a file says
	// while the daemon runs that only the pins count.
	Pins, All, Later bool
	// Make: the leader makes what the cluster lacks.
	Make bool
}

// InForce returns who is to be believed by what believeFile says, now or last; wrong is why it cannot be used.
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
