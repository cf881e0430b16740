package clustermesh

import (
	"fmt"
	"iter"
	"net/netip"
)

// Contact is what this node's gossip observes of another node. It is an observation, not a shared
// fact.
type Contact uint8

// Contacts, but for Reported from worst known to best known.
const (
	// Held: not heard since this daemon started, or not any more. Its records are kept, because
	// unknown is not empty.
	Held Contact = iota
	// Silent: held, and its machine answers neither on the underlay nor inside the tunnel.
	Silent
	// Quiet: gossip lost it but its machine answers: the daemon is down, the pods are not.
	Quiet
	// Alive: a live member of the gossip pool, which has proven here that it is there.
	Alive
	// Reported: a live member by what others report: this node keeps no stream to it, and relays
	// hear its cluster.
	Reported
)

// Heard reports whether the daemon is heard, here or by relays.
func (c Contact) Heard() bool { return c == Alive || c == Reported }

// Better reports whether more is known of a node with this contact than with another one.
func (c Contact) Better(than Contact) bool { return c.rank() > than.rank() }

func (c Contact) rank() int {
	return [...]int{Held: 0, Silent: 1, Quiet: 2, Reported: 3, Alive: 4}[c]
}

func (c Contact) String() string {
	return [...]string{"held", "silent", "quiet", "alive", "reported"}[c]
}

// MarshalText encodes a Contact as its name.
func (c Contact) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (c *Contact) UnmarshalText(b []byte) error {
	for _, k := range []Contact{Held, Silent, Quiet, Alive, Reported} {
		if k.String() == string(b) {
			*c = k
			return nil
		}
	}
	return fmt.Errorf("contact %q is none of held, silent, quiet, alive, reported", b)
}

// State is who has what in the clusterset, as one node knows it. It is a value: never changed once
// made.
type State struct {
	// Records holds each origin's latest record.
	Records ByOrigin[Record]
	// Contacts holds what gossip observes of each node; a missing node is Held.
	Contacts ByOrigin[Contact]
	// Joined is when clusters joined the clusterset, in Unix seconds; see State.Exports. Clusters
	// for which it was not noted are missing.
	Joined map[ClusterName]int64
	// Quotas are how many exports of other clusters become imports. Clusters without one are not bounded.
	Quotas map[ClusterName]int
	// Proven is where nodes proved who they are when they were dialled there. Nodes that were not dialled
	// are missing, and those of clusters that are not pinned.
	Proven ByOrigin[netip.AddrPort]
}

// Origins returns the origins of all records, sorted.
func (s State) Origins() []Origin {
	return s.Records.Origins()
}

// Nodes yields the records of nodes in the order of their origins.
func (s State) Nodes() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for _, o := range s.Origins() {
			if r := s.Records.Get(o); o.Node != "" && r.Content.Node != nil && !yield(r) {
				return
			}
		}
	}
}

// Clusters returns the names of all clusters known, sorted.
func (s State) Clusters() []ClusterName {
	return s.Records.Clusters()
}
