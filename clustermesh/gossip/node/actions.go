package node

import (
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
)

// Actions are what to do after events, in the order of the fields.
type Actions struct {
	// Log are lines for the log.
	Log []Line
	// Neighbours are those to keep a stream to from now on (true) or no more (false). Messages to a
	// new one can be sent at once; they wait for its stream.
	Neighbours map[clustermesh.Origin]bool
	// Send are messages to neighbours. To wait for one must not delay the others.
	Send []replica.Envelope
	// Distances and Statement are to be saved, if they are not nil.
	Distances map[clustermesh.ClusterName]uint32
	Statement []byte
	// Dirty are the origins whose records were replaced or dropped, which should be saved.
	Dirty []clustermesh.Origin
	// Changed is true if the state, the leader or a Problem changed, and Beat if something may be due, so
	// that the next beat should come at once.
	Changed, Beat bool
	// Pulse is when to call Pulse, from now; zero if that was asked for already, or is not needed.
	Pulse time.Duration
}

// Line is a line of the log: a message, and keys with values. Level is that of log/slog.
type Line struct {
	Level   Level
	Message string
	Args    []any
}

// Level is how much a line matters, in the numbers of log/slog.
type Level int

// The levels that lines have.
const (
	Debug Level = -4
	Info  Level = 0
	Warn  Level = 4
	Error Level = 8
)
