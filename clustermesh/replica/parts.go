package replica

import "slices"

// partSize is how many records one part of a message has at most.
const partSize = 128

// Parts returns the messages that together say what a message of records says. Each takes a daemon a
// few milliseconds, so that what others send can come between, however long the message is.
func Parts(m Message) []Message {
	switch m := m.(type) {
	case *Snapshot:
		if len(m.Entries) <= partSize {
			break
		}
		out := []Message{&Snapshot{Rejected: m.Rejected}}
		for part := range slices.Chunk(m.Entries, partSize) {
			out = append(out, &Snapshot{Entries: part})
		}
		return out
	case *Delta:
		if len(m.Items) <= partSize {
			break
		}
		var out []Message
		for part := range slices.Chunk(m.Items, partSize) {
			out = append(out, &Delta{Items: part})
		}
		return out
	}
	return []Message{m}
}
