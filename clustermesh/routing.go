package clustermesh

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Routing is what a Service asks of the choice of endpoints, beyond what Kubernetes itself has fields
// for. Package object reads it from annotations of the Service and of its ServiceExport.
type Routing struct {
	// Tiers are the tiers that count, nearest first; empty means all. An endpoint of a tier that is
	// not among them belongs to the next farther one that is, and clusterset always is.
	Tiers []string `cbor:"1,keyasint,omitempty" json:"tiers,omitempty"`
	// Prefer are clusters in the order in which they are used, before all others.
	Prefer []ClusterName `cbor:"2,keyasint,omitempty" json:"prefer,omitempty"`
	// Weights are the shares of clusters, sorted by cluster. If there are any, clusters without a
	// weight are only for fail-over.
	Weights []ClusterWeight `cbor:"3,keyasint,omitempty" json:"weights,omitempty"`
	// MinReady is how many endpoints of a tier must be ready for the tier to carry everything.
	MinReady MinReady `cbor:"4,keyasint,omitempty" json:"minReady,omitzero"`
	// Drain takes the cluster's endpoints of this Service out of use.
	Drain *Drain `cbor:"5,keyasint,omitempty" json:"drain,omitempty"`
}

// ClusterWeight is a cluster's share relative to those of other clusters.
type ClusterWeight struct {
	Cluster ClusterName `cbor:"1,keyasint" json:"cluster"`
	Weight  uint32      `cbor:"2,keyasint" json:"weight"`
}

// MinReady is a number of endpoints, or else a percentage of those that a tier should have. The zero
// value leaves it to the configuration.
type MinReady struct {
	Count   uint32 `cbor:"1,keyasint,omitempty" json:"count,omitempty"`
	Percent uint32 `cbor:"2,keyasint,omitempty" json:"percent,omitempty"`
}

// Drain takes endpoints out of use: they get no new connections while others can.
type Drain struct {
	// Since is when it began, in Unix seconds, and Over how many seconds it takes. Until then the
	// endpoints get a share that shrinks evenly.
	Since int64 `cbor:"1,keyasint,omitempty" json:"since,omitempty"`
	Over  int64 `cbor:"2,keyasint,omitempty" json:"over,omitempty"`
}

// MaxDrains bounds Content.Drains: more nodes are not drained at once while their daemons are down.
const MaxDrains = 256

// NodeDrain takes the endpoints of one node out of use.
type NodeDrain struct {
	Node  NodeName `cbor:"1,keyasint" json:"node"`
	Drain Drain    `cbor:"2,keyasint" json:"drain"`
}

// AnnotationDrain takes endpoints out of use: those of a Service or ServiceExport, of a Node, or, on
// strait's own Namespace, of the whole cluster. The value is "true", or when it began and how long it
// takes: "2026-11-23T12:00:00Z/5m".
const AnnotationDrain = "strait.io/drain"

// DrainValue returns the value of AnnotationDrain for a drain that begins now and takes a while.
func DrainValue(now time.Time, over time.Duration) string {
	if over <= 0 {
		return "true"
	}
	return now.UTC().Format(time.RFC3339) + "/" + over.String()
}

// DefaultNamespace is strait's own namespace, unless it is installed elsewhere.
const DefaultNamespace = "strait-system"

// The names of the tiers, nearest first.
var TierNames = []string{"node", "zone", "region", "cluster", "clusterset"}

// Limits on what a Service can ask for.
const (
	MaxClusters   = 256       // named in one list
	MaxWeight     = 1_000_000 // of a cluster
	MaxDrainOver  = 24 * time.Hour
	maxMinReady   = 100_000
	maxDrainStart = 1 << 40 // in Unix seconds
)

// Drained returns which part of the share is gone at a time, 0 to 1.
func (d *Drain) Drained(now time.Time) float64 {
	switch {
	case d == nil:
		return 0
	case d.Over <= 0:
		return 1
	}
	passed := now.Sub(time.Unix(d.Since, 0)).Seconds()
	return min(1, max(0, passed/float64(d.Over)))
}

// MaxDrainNext is the longest time that Next returns.
const MaxDrainNext = time.Minute

// Next returns how long it is until a drain takes noticeably more, which is a hundredth; 0 if it takes
// no more. A cluster can have thousands of Services, which all change then.
func (d *Drain) Next(now time.Time) time.Duration {
	if d.Drained(now) >= 1 || d == nil {
		return 0
	}
	over := time.Duration(d.Over) * time.Second
	begins := time.Unix(d.Since, 0).Sub(now)
	return min(max(time.Second, begins, min(over/100, begins+over)), MaxDrainNext)
}

// Check returns an error unless a drain can be used.
func (d *Drain) Check() error {
	switch {
	case d == nil:
		return nil
	case d.Since < 0 || d.Since > maxDrainStart:
		return errors.New("drain.since is no time")
	case d.Over < 0 || d.Over > int64(MaxDrainOver/time.Second):
		return fmt.Errorf("drain.over is not between 0 and %s", MaxDrainOver)
	}
	return nil
}

// Check returns an error unless the routing can be used. Tiers that this build does not know are
// left to package locality, which ignores them.
func (r *Routing) Check() error {
	switch {
	case r == nil:
		return nil
	case len(r.Tiers) > 2*len(TierNames):
		return errors.New("routing.tiers has too many elements")
	case len(r.Prefer) > MaxClusters || len(r.Weights) > MaxClusters:
		return fmt.Errorf("routing names more than %d clusters", MaxClusters)
	case r.MinReady.Count > maxMinReady || r.MinReady.Percent > 100:
		return errors.New("routing.minReady is out of range")
	}
	for _, t := range r.Tiers {
		if err := CheckText(t, MaxWord); err != nil {
			return err
		}
	}
	for _, c := range r.Prefer {
		if err := CheckName(string(c)); err != nil {
			return err
		}
	}
	for _, w := range r.Weights {
		if err := CheckName(string(w.Cluster)); err != nil {
			return err
		}
		if w.Weight > MaxWeight {
			return fmt.Errorf("weight %d of cluster %s is more than %d", w.Weight, w.Cluster, MaxWeight)
		}
	}
	return r.Drain.Check()
}

// Weight returns a cluster's weight, and whether the routing has any weights.
func (r *Routing) Weight(c ClusterName) (weight uint32, any bool) {
	if r == nil || len(r.Weights) == 0 {
		return 0, false
	}
	i := slices.IndexFunc(r.Weights, func(w ClusterWeight) bool { return w.Cluster == c })
	if i < 0 {
		return 0, true
	}
	return r.Weights[i].Weight, true
}

// Says reports whether the routing asks anything of the choice, besides to drain its own cluster.
func (r *Routing) Says() bool {
	return r != nil && (len(r.Tiers) > 0 || len(r.Prefer) > 0 || len(r.Weights) > 0 || r.MinReady != MinReady{})
}

// Equal reports whether two routings ask for the same.
func (r *Routing) Equal(o *Routing) bool {
	if r == nil || o == nil {
		return r == o
	}
	return slices.Equal(r.Tiers, o.Tiers) && slices.Equal(r.Prefer, o.Prefer) && slices.Equal(r.Weights, o.Weights) &&
		r.MinReady == o.MinReady && r.Drain.Equal(o.Drain)
}

// Equal reports whether two drains are the same.
func (d *Drain) Equal(o *Drain) bool {
	if d == nil || o == nil {
		return d == o
	}
	return *d == *o
}
