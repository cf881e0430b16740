package inspect

import (
	"net/netip"

	"strait.io/strait/internal/l4"
)

// ServiceRow is a frontend as the maps hold it.
type ServiceRow struct {
	Addr l4.Addr `json:"addr"`
	// Index is the number of its set and of its counters.
	Index uint32 `json:"index"`
	// Base and Count say which slots hold its backends.
	Base            uint32 `json:"base"`
	Count           uint32 `json:"count"`
	AffinitySeconds uint32 `json:"affinitySeconds"`
	// Connects counts connections, and choices for an unconnected socket's datagrams.
	Connects uint64 `json:"connects"`
	// Refused counts those that found no backend.
	Refused uint64 `json:"refused"`
}

// BackendRow is a backend of a frontend.
type BackendRow struct {
	Frontend l4.Addr        `json:"frontend"`
	Backend  netip.AddrPort `json:"backend"`
	Weight   uint32         `json:"weight"`
	Connects uint64         `json:"connects"`
}

// SlotRow is a slot that is in use: an entry of its frontend's alias table.
type SlotRow struct {
	Slot     uint32         `json:"slot"`
	Frontend l4.Addr        `json:"frontend"`
	Backend  netip.AddrPort `json:"backend"`
	// Threshold is the share of what falls on the slot that is its own, in 2^-32; the rest is the slot's
	// whose number is Alias more than the set's first.
	Threshold uint32 `json:"threshold"`
	Alias     uint32 `json:"alias"`
}

// AffinityRow says which backend a client keeps.
type AffinityRow struct {
	Frontend l4.Addr `json:"frontend"`
	// Client is the cookie of a network namespace (SO_NETNS_COOKIE).
	Client  uint64         `json:"client"`
	Backend netip.AddrPort `json:"backend"`
	// IdleSeconds is how long ago the client connected last. Above the frontend's AffinitySeconds the
	// row counts no more, and stays until the client comes again or others need the room.
	IdleSeconds float64 `json:"idleSeconds"`
}

// SocketRow is one translation of a live socket.
type SocketRow struct {
	// Cookie is the socket's (SO_COOKIE; `ss -e` shows it as sk).
	Cookie   uint64         `json:"cookie"`
	Proto    l4.Proto       `json:"proto"`
	Frontend netip.AddrPort `json:"frontend"`
	Backend  netip.AddrPort `json:"backend"`
	// Connected: by connect(), else by sendto() and the like.
	Connected bool `json:"connected"`
	// Overflow: another live socket has the place where the record would be found at once.
	Overflow bool `json:"overflow"`
}
