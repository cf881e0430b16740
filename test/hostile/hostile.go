// Package hostile tries to break what SECURITY.md promises, by cases that are drawn at random. Rows has
// one row for each thing that must hold, whatever an attacker says: one who has the gossip key, a node, or
// a whole cluster with its root. Each case goes the way of the real thing: objects, what the root states of
// them, the sealed record, what the receiver admits of it, the plan, and the leader's writes.
//
// Input is a seed; each case of a row is drawn from that and its number alone, so that one that breaks
// something can be repeated. Output is what was broken. It decides nothing that daemons decide: it must only
// call the pure packages that do.
package hostile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
)

// Row is one thing that must hold.
type Row struct {
	Name string
	// Share is how many of a thousand cases this row gets: the slow ones get fewer.
	Share int
	// Try makes one case, and returns what it broke.
	Try func(*Case) error
}

// Rows are tried by CI and by make bench.
var Rows = []Row{
	{"a seal is no other node's", 370, (*Case).seal},
	{"what a cluster with its root says stays inside its pin", 300, (*Case).pinned},
	{"a root states of a node nothing that another one has", 60, (*Case).certify},
	{"a root states no part of ClusterIPs to which another node is the entry", 20, (*Case).certifyEntry},
	{"a node with a pod CIDR gets it, whatever other node claimed it before", 60, (*Case).newcomer},
	{"members that are made up keep no known one out", 50, (*Case).crowd},
	{"a plan keeps the tunnels, routes and frontends of others", 40, (*Case).plan},
	{"the ClusterIPs of a cluster stay with the node that was the entry to them", 20, (*Case).planEntry},
	{"a daemon that was restarted plans the tunnels that its device had", 20, (*Case).planAgain},
	{"a new daemon plans the tunnels of those who prove what they have", 20, (*Case).planNew},
	{"a leader writes only what a cluster may export", 40, (*Case).write},
}

// Case is one case: what is drawn comes from it.
type Case struct {
	*rand.Rand
	*world
	// entries lets nodes claim the ClusterIPs to which another node is the entry.
	entries bool
}

// Broken says which case broke a row.
type Broken struct {
	Row          string
	Seed, Number uint64
	Err          error
}

func (b *Broken) Error() string {
	return fmt.Sprintf("%s: case %d: %v\nto repeat it: HOSTILE_SEED=%d HOSTILE_CASE=%d go test ./test/hostile -run 'TestHostile/%s'",
		b.Row, b.Number, b.Err, b.Seed, b.Number, strings.ReplaceAll(b.Row, " ", "_"))
}

func (b *Broken) Unwrap() error { return b.Err }

// Case makes one case of the row.
func (r Row) Case(seed, number uint64) error {
	w, err := honest()
	if err != nil {
		return fmt.Errorf("make honest clusters: %w", err)
	}
	if err := r.Try(&Case{Rand: rand.New(rand.NewPCG(seed, number)), world: w}); err != nil {
		return &Broken{r.Name, seed, number, err}
	}
	return nil
}

// Run makes that many cases of the row, several at a time, and returns how many broke it, with the first
// of those.
func (r Row) Run(seed uint64, cases, parallel int) (broken int64, first error) {
	var next, count atomic.Int64
	var once sync.Once
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(cases) {
					return
				}
				if err := r.Case(seed, uint64(i)); err != nil {
					count.Add(1)
					once.Do(func() { first = err })
				}
			}
		})
	}
	workers.Wait()
	return count.Load(), first
}

// Run makes that many cases of all rows together. It returns how many broke something, with one of each
// row.
func Run(seed uint64, cases, parallel int) (broken int64, err error) {
	var errs []error
	for _, r := range Rows {
		n, err := r.Run(seed, cases*r.Share/1000, parallel)
		broken += n
		errs = append(errs, err)
	}
	return broken, errors.Join(errs...)
}
