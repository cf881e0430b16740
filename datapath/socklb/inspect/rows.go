package inspect

import (
	"net/netip"

	"strait.io/strait/internal/l4"
)

// DefaultPins is where straitd pins its maps unless bpf.pins is set.
const DefaultPins = "/sys/fs/bpf/strait"

// ServiceRow is a frontend as the maps hold it.
type ServiceRow struct {
	Addr l4.Addr `json:"addr"`
	// Index is the number of its set and of its counters.
	Index uint32 `json:"index"`
	// Base and Count say which slots hold its backends.
	Base            uint32 `json:"base"`
	Count           uint32 `json:"count"`
	AffinitySeconds uint32 `json:"affinitySeconds"`
	// Connects counts connections, and choices of a backend for an unconnected socket's datagrams.
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
	// Threshold is the share that the slot keeps of the traffic that is drawn to it, in units of
	// 2^-32. The rest goes to the slot whose number is Alias more than the set's first.
	Threshold uint32 `json:"threshold"`
	Alias     uint32 `json:"alias"`
}

// AffinityRow is the backend that a client keeps.
type AffinityRow struct {
	Frontend l4.Addr `json:"frontend"`
	// Client is the cookie of a network namespace (SO_NETNS_COOKIE).
	Client  uint64         `json:"client"`
	Backend netip.AddrPort `json:"backend"`
	// IdleSeconds is how long ago the client last connected. Above the frontend's AffinitySeconds
	// the row has no effect any more; it stays until the client comes again or other rows need the
	// room.
	IdleSeconds float64 `json:"idleSeconds"`
}

// SocketRow is one translation of a live socket.
type SocketRow struct {
	// Cookie is the socket's (SO_COOKIE; `ss -e` shows it as sk).
	Cookie   uint64         `json:"cookie"`
	Proto    l4.Proto       `json:"proto"`
	Frontend netip.AddrPort `json:"frontend"`
	Backend  netip.AddrPort `json:"backend"`
	// Connected is true if the translation was made by connect(), false if by sendto() and the
	// like.
	Connected bool `json:"connected"`
	// Overflow is true if the record is in the socket's own storage, because its home was taken by
	// another live socket or by another record of this socket.
	Overflow bool `json:"overflow"`
}
