package kernel

import (
	"cmp"
	"net/netip"
	"strconv"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/table"
	"strait.io/strait/internal/l4"
)

// Named is the first part of every item: a frontend, and its service if the daemon names it.
type Named struct {
	Service  string  `json:"service,omitempty"`
	Frontend l4.Addr `json:"frontend"`
}

func (n Named) at() l4.Addr { return n.Frontend }

// called is what a FILTER would name it by.
func (n Named) called() string { return cmp.Or(n.Service, n.Frontend.String()) }

// cells are the columns SERVICE and FRONTEND.
func (n Named) cells() []string {
	if n.Service == "" {
		return []string{api.None, n.Frontend.String()}
	}
	return []string{n.Service, n.Frontend.String()}
}

// name finds the service of a frontend.
func (p pinned) name(a l4.Addr) Named { return Named{p.names[a], a} }

// BPFItem is a row of one of the lists below.
type BPFItem interface {
	table.Row
	at() l4.Addr
	called() string
}

// BPFService is a frontend in the map services, with its set.
type BPFService struct {
	Named
	// Index is the number of the set, which has Count slots, starting at Base.
	Index           uint32 `json:"index"`
	Base            uint32 `json:"base"`
	Count           uint32 `json:"count"`
	AffinitySeconds uint32 `json:"affinitySeconds,omitempty"`
	Connects        uint64 `json:"connects"`
	Refused         uint64 `json:"refused"`
}

// TableHeader names the columns.
func (BPFService) TableHeader() []string {
	return []string{"SERVICE", "FRONTEND", "INDEX", "BASE", "COUNT", "AFFINITY", "CONNECTS", "REFUSED"}
}

// TableRow marks a frontend that refuses connections.
func (s BPFService) TableRow(time.Time) []string {
	count, affinity := number(s.Count), api.None
	if s.Count == 0 {
		count = api.Bad + " 0"
	}
	if s.AffinitySeconds > 0 {
		affinity = number(s.AffinitySeconds) + "s"
	}
	return append(s.cells(), number(s.Index), number(s.Base), count, affinity, number(s.Connects), number(s.Refused))
}

// BPFBackend is one backend of a frontend.
type BPFBackend struct {
	Named
	Backend  netip.AddrPort `json:"backend"`
	Weight   uint32         `json:"weight"`
	Connects uint64         `json:"connects"`
}

// TableHeader names the columns.
func (BPFBackend) TableHeader() []string {
	return []string{"SERVICE", "FRONTEND", "BACKEND", "WEIGHT", "CONNECTS"}
}

// TableRow has one cell per column.
func (b BPFBackend) TableRow(time.Time) []string {
	return append(b.cells(), b.Backend.String(), number(b.Weight), number(b.Connects))
}

// BPFSlot is one used slot of the map backends.
type BPFSlot struct {
	Slot uint32 `json:"slot"`
	Named
	Backend netip.AddrPort `json:"backend"`
	// Threshold/2^32 of the connections drawn for the slot are its own; the rest go to the slot
	// Alias of the same set.
	Threshold uint32 `json:"threshold"`
	Alias     uint32 `json:"alias"`
}

// TableHeader names the columns.
func (BPFSlot) TableHeader() []string {
	return []string{"SLOT", "SERVICE", "FRONTEND", "BACKEND", "THRESHOLD", "KEEPS", "ALIAS"}
}

// TableRow has one cell per column.
func (s BPFSlot) TableRow(time.Time) []string {
	return append(append([]string{number(s.Slot)}, s.cells()...), s.Backend.String(), number(s.Threshold),
		api.Percent(float64(s.Threshold)/(1<<32)), number(s.Alias))
}

// BPFAffinity is a client that keeps its backend.
type BPFAffinity struct {
	Named
	// Client is the cookie of its network namespace.
	Client      uint64         `json:"client"`
	Backend     netip.AddrPort `json:"backend"`
	IdleSeconds float64        `json:"idleSeconds"`
	// LeftSeconds is how long the client still gets the same backend; 0 if that is over.
	LeftSeconds float64 `json:"leftSeconds"`
}

// TableHeader names the columns.
func (BPFAffinity) TableHeader() []string {
	return []string{"SERVICE", "FRONTEND", "CLIENT", "BACKEND", "IDLE", "LEFT"}
}

// TableRow has one cell per column.
func (f BPFAffinity) TableRow(time.Time) []string {
	age := func(seconds float64) string { return api.Age(time.Duration(seconds * float64(time.Second))) }
	left := "over"
	if f.LeftSeconds > 0 {
		left = age(f.LeftSeconds)
	}
	return append(f.cells(), number(f.Client), f.Backend.String(), age(f.IdleSeconds), left)
}

// BPFSocket is a live socket that was load-balanced.
type BPFSocket struct {
	Cookie uint64 `json:"cookie"`
	Named
	Backend netip.AddrPort `json:"backend"`
	// Connected is true for connect(), false for sendto() and the like.
	Connected bool `json:"connected"`
	// Overflow is true if the record is in the storage of the socket, not in the map sockets.
	Overflow bool `json:"overflow"`
}

// TableHeader names the columns.
func (BPFSocket) TableHeader() []string {
	return []string{"COOKIE", "SERVICE", "FRONTEND", "BACKEND", "BY", "MAP"}
}

// TableRow has one cell per column.
func (s BPFSocket) TableRow(time.Time) []string {
	by, in := "sendto", "sockets"
	if s.Connected {
		by = "connect"
	}
	if s.Overflow {
		in = "connected_flows"
		if !s.Connected {
			in = "unconnected_flows"
		}
	}
	return append(append([]string{number(s.Cookie)}, s.cells()...), s.Backend.String(), by, in)
}

// number formats a number as it is in the map, unabbreviated.
func number[T uint32 | uint64](n T) string { return strconv.FormatUint(uint64(n), 10) }
