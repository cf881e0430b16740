// Package turn decides what one turn of the daemon's loop does, in which order, and how cautiously.
//
// Input is what the daemon knows when a turn begins; output is an ordered list of steps. The daemon
// carries the steps out for real, and test/script on fakes. Pure: it must not know gossip, the
// source, the kernel or how any step is done.
package turn

import (
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
)

// Caution is how much a turn may remove from the kernel.
type Caution uint8

const (
	// GrowOnly: gossip is not synced. What is wanted is added; no backend and no frontend is lost.
	GrowOnly Caution = iota
	// NoPrune: the source or the leader is not ready. What is wanted is in force; what is not
	// wanted stays.
	NoPrune
	// Exact: everything is known. The kernel holds what is wanted and nothing else.
	Exact
)

func (c Caution) String() string { return [...]string{"grow only", "no prune", "exact"}[c] }

// Inputs are what a turn is decided from.
type Inputs struct {
	Self plan.Self
	// First is true in the first turn of the daemon's life.
	First bool
	// Derived: derived Services allocate the ClusterSetIPs, not the plan.
	Derived bool

	// Local is what the source has read. Sourced is false until that is everything: what
	// Local lacks is then unknown, not absent.
	Local   clustermesh.Local
	Sourced bool
	// Record is what this node publishes about itself, see NodeContent; nil while that is unknown.
	Record *clustermesh.Content

	// NoTunnels is true while the daemon has tunnels to keep, and has had none in its life; Age is how long
	// it lives.
	NoTunnels bool
	Age       time.Duration

	// Results are what the leader has made of other clusters' Services by its policies; nil while it
	// has not looked yet.
	Results []clustermesh.PolicyResult

	// Behind is true until Local reflects the configuration of every accepted cluster whose record
	// this node has: what it lacks is then unknown, not absent.
	Behind bool

	// Leads is true if this node writes its cluster's record.
	Leads bool
	// Synced is false until gossip holds the whole clusterset; Missing is then what it waits for.
	Synced  bool
	Missing string
	// Fresh is true once this life of the daemon has received the records of others. Before, gossip
	// may hold only what an earlier life saved, which lacks what happened just before a crash.
	Fresh bool

	// State is what gossip holds, and Plan what follows from it. A turn begins without them; Look
	// fetches them.
	State clustermesh.State
	Plan  *plan.Result
	// PublishedCluster is true once this turn has published the cluster's record.
	PublishedCluster bool
}

// Step is one thing to do. Steps are carried out in order; one that fails does not stop the next.
type Step interface{ step() }

type (
	// Publish publishes the node's own record.
	Publish struct{ Content clustermesh.Content }
	// PublishCluster publishes the cluster's record. It sets Inputs.PublishedCluster.
	PublishCluster struct{ Content clustermesh.Content }
	// Look reads the state, plans from it, and decides again. It is always the last step of a list.
	Look struct{}
	// Apply makes the kernel hold the plan.
	Apply struct {
		Caution Caution
		// Settled: what the plan lacks is gone. Otherwise, an earlier life of the daemon
		// may have known it, and crashed before it saved it.
		Settled bool
	}
	// Handshake starts handshakes with peers that are new, and if Wait, waits for them for a bounded
	// time.
	Handshake struct{ Wait bool }
	// Show makes the plan visible to the API and, if Names, to DNS. Without Names the names are
	// unknown, which is not the same as empty.
	Show struct {
		Waiting []string // what the daemon waits for, in words
		Names   bool
	}
	// Write gives the API server the objects that follow from the plan.
	Write struct{}
	// Again asks for another turn at once.
	Again struct{}
)

func (Publish) step()        {}
func (PublishCluster) step() {}
func (Look) step()           {}
func (Apply) step()          {}
func (Handshake) step()      {}
func (Show) step()           {}
func (Write) step()          {}
func (Again) step()          {}

// Decide returns the next steps of a turn, the last of which may be Look. A turn publishes first,
// so that its plan includes what it published:
//
//	publish the node's record → look → publish the cluster's record → look →
//	kernel → handshakes → show → write objects
//
// The first turn of a daemon's life applies what is known from disk before it publishes anything:
// what is published attracts traffic, which needs the tunnels. While it cannot have any, it does not
// publish; see Silent.
func Decide(in Inputs) []Step {
	if in.Silent() {
		in.Record = nil
	}
	if in.Plan == nil {
		if in.Record != nil && !in.First {
			return []Step{Publish{*in.Record}, Look{}}
		}
		return []Step{Look{}}
	}
	leads := in.Leads && in.Sourced && in.Synced && !in.Behind
	if leads && !in.First && !in.PublishedCluster {
		content := in.Local.ClusterContent(in.allocations(), in.State.Late(in.Self.Cluster))
		content.Results = in.results()
		return []Step{PublishCluster{content}, Look{}}
	}
	waiting := in.waiting()
	// The first plan has the node's own record as the last life saved it.
	steps := []Step{Apply{in.caution(waiting), in.Fresh && !in.First}, Handshake{Wait: in.First}}
	if in.First && in.Record != nil {
		steps = append(steps, Publish{*in.Record})
	}
	steps = append(steps, Show{Waiting: waiting, Names: in.Sourced && in.Synced})
	if leads {
		steps = append(steps, Write{})
	}
	if in.First {
		steps = append(steps, Again{}) // what was just published is not in this plan
	}
	return steps
}

// tunnelGrace is how long a daemon waits for its tunnels before it publishes. Another container can run
// their process, which comes up seconds later when a machine boots.
const tunnelGrace = 30 * time.Second

// Silent reports whether the node publishes nothing yet, because no other node could reach its pods.
func (in Inputs) Silent() bool { return in.NoTunnels && in.Age < tunnelGrace }

// allocations returns the ClusterSetIPs that the cluster should have: those of its derived
// Services, or as planned.
func (in Inputs) allocations() []clustermesh.Allocation {
	if in.Derived {
		return in.Local.Allocations
	}
	return in.Plan.Allocations
}

// results returns the policies' results for the cluster's record: those of the last leader
// until this one has made its own.
func (in Inputs) results() []clustermesh.PolicyResult {
	switch {
	case in.Results == nil:
		return in.State.Records.Get(clustermesh.Origin{Cluster: in.Self.Cluster}).Content.Results
	case len(in.Results) == 0:
		return nil
	}
	return in.Results
}

// waiting names the inputs that are not complete yet.
func (in Inputs) waiting() (out []string) {
	if !in.Sourced {
		out = append(out, "source: the cluster's objects have not been read yet")
	}
	if !in.Synced {
		out = append(out, "gossip: "+in.Missing)
	}
	own, led := in.State.Records.Lookup(clustermesh.Origin{Cluster: in.Self.Cluster})
	if !led || in.Sourced && !slices.Equal(own.Content.Allocations, in.allocations()) {
		out = append(out, "leader: the cluster's leader has not given out all ClusterSetIPs yet")
	}
	return out
}

func (in Inputs) caution(waiting []string) Caution {
	switch {
	case !in.Synced:
		return GrowOnly
	case len(waiting) > 0:
		return NoPrune
	}
	return Exact
}
