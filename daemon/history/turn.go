// Package history says what one turn of the daemon changed and why, and writes down what it was planned
// from, so that the plan of any noted moment can be made again.
//
// Input is a series of Turns; output is, for each that differs from the one before, an item for people
// (package api) and bytes that only hold what differs. From the bytes, a Replay makes the Turns and their
// plans again. Pure: it must not know files, sockets or the clock.
package history

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
)

// Turn is what a turn of the daemon was planned from, and what came of it. Inputs.Now is its time. It is
// immutable.
type Turn struct {
	Inputs plan.Inputs
	Result *plan.Result
	// Problems are all that the daemon reported, sorted.
	Problems []clustermesh.Problem
	// Start is set in the first turn of a daemon's life, to its version.
	Start string
	// Leads is true if the node writes its cluster's record.
	Leads bool
	// Error is why the kernel does not hold all of the plan.
	Error string
}

// Time is when the turn was planned.
func (t *Turn) Time() time.Time { return t.Inputs.Now }

// settings is the part of a Turn that is written as a whole when any of it changes: it is small, or
// changes rarely.
type settings struct {
	Self       plan.Self                          `cbor:"1,keyasint"`
	CIDRs      []netip.Prefix                     `cbor:"2,keyasint,omitempty"`
	Barred     []string                           `cbor:"3,keyasint,omitempty"`
	Mesh       bool                               `cbor:"4,keyasint,omitempty"`
	Locality   plan.Locality                      `cbor:"5,keyasint,omitempty"`
	Host       plan.Host                          `cbor:"6,keyasint,omitempty"`
	Device     []plan.Had                         `cbor:"7,keyasint,omitempty"`
	Far        map[clustermesh.ClusterName]uint32 `cbor:"8,keyasint,omitempty"`
	Faults     []fault                            `cbor:"9,keyasint,omitempty"`
	Remotes    []plan.Remote                      `cbor:"10,keyasint,omitempty"`
	ClusterIPs []netip.Prefix                     `cbor:"11,keyasint,omitempty"`
	Guests     []plan.Guest                       `cbor:"12,keyasint,omitempty"`
	Joined     map[clustermesh.ClusterName]int64  `cbor:"13,keyasint,omitempty"`
	Quotas     map[clustermesh.ClusterName]int    `cbor:"14,keyasint,omitempty"`
	Learning   bool                               `cbor:"15,keyasint,omitempty"`
	Leads      bool                               `cbor:"16,keyasint,omitempty"`
}

// fault is an element of plan.Inputs.Faults.
type fault struct {
	Node     clustermesh.Origin `cbor:"1,keyasint"`
	Why      string             `cbor:"2,keyasint,omitempty"`
	Impaired bool               `cbor:"3,keyasint,omitempty"`
}

// settingsOf returns the settings of a turn.
func settingsOf(t *Turn) settings {
	in := &t.Inputs
	s := settings{
		Self: in.Self, CIDRs: in.Config.CIDRs, Barred: in.Config.Barred, Mesh: in.Config.Mesh, Locality: in.Config.Locality,
		Host: in.Host, Device: in.Device, Far: in.Far, Remotes: in.Remotes, ClusterIPs: in.ClusterIPs, Guests: in.Guests,
		Joined: in.State.Joined, Quotas: in.State.Quotas, Learning: in.Learning, Leads: t.Leads,
	}
	for o, f := range in.Faults {
		s.Faults = append(s.Faults, fault{o, f.Why, f.Impaired})
	}
	slices.SortFunc(s.Faults, func(a, b fault) int { return a.Node.Compare(b.Node) })
	return s
}

// put writes the settings into a turn.
func (s settings) put(t *Turn) {
	in := &t.Inputs
	in.Self, in.Host, in.Device, in.Far, in.Remotes, in.ClusterIPs, in.Guests = s.Self, s.Host, s.Device, s.Far, s.Remotes, s.ClusterIPs, s.Guests
	in.Config = plan.Config{CIDRs: s.CIDRs, Barred: s.Barred, Mesh: s.Mesh, Locality: s.Locality}
	in.State.Joined, in.State.Quotas, in.Learning, t.Leads = s.Joined, s.Quotas, s.Learning, s.Leads
	in.Faults = nil
	if len(s.Faults) > 0 {
		in.Faults = make(map[clustermesh.Origin]plan.Fault, len(s.Faults))
	}
	for _, f := range s.Faults {
		in.Faults[f.Node] = plan.Fault{Why: f.Why, Impaired: f.Impaired}
	}
}

// sameSettings reports whether two turns have the same settings. The configuration of a daemon does not
// change in its life, so it is looked at only where a life begins.
func sameSettings(a, b *Turn) bool {
	x, y := &a.Inputs, &b.Inputs
	same := a.Leads == b.Leads && x.Self == y.Self && x.Learning == y.Learning && maps.Equal(x.Far, y.Far) && maps.Equal(x.Faults, y.Faults) &&
		slices.Equal(x.Remotes, y.Remotes) && slices.Equal(x.ClusterIPs, y.ClusterIPs) &&
		maps.Equal(x.State.Joined, y.State.Joined) && maps.Equal(x.State.Quotas, y.State.Quotas) &&
		reflect.DeepEqual(x.Host, y.Host) && reflect.DeepEqual(x.Guests, y.Guests) && reflect.DeepEqual(x.Device, y.Device)
	return same && (b.Start == "" || reflect.DeepEqual(x.Config, y.Config))
}
