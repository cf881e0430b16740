package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// Bounds on Problems. Those that peers without proof can make at will have bounds of their own, so that they
// never hide the others, nor keep them out of the log.
const (
	// maxNoted bounds the Problems that are held, and maxWrongKeys those of hosts with another key.
	maxNoted     = 256
	maxWrongKeys = 8
	// maxStrange is how many Problems of strangers are shown, and maxFurther how many more are counted.
	maxStrange = 32
	maxFurther = 1000
	// maxLogged is how many Problems are logged in a minute, and maxStrangeLogged how many of strangers.
	maxLogged        = 40
	maxStrangeLogged = 10
)

// keyMore and keyFurther are the keys of the Problems that stand for those that are not held.
const (
	keyMore    = "more"
	keyFurther = "more of strangers"
)

// problemBook holds Problems, by key, until they are solved or expire.
type problemBook struct {
	held map[string]noted
	// further are the keys of strangers' Problems for which there was no room, and when they expire.
	further map[string]time.Time
	// logged are the lines about Problems, and loggedStrange those about Problems of strangers.
	logged, loggedStrange *allowance
}

type noted struct {
	problem clustermesh.Problem
	until   time.Time // when it expires; zero: kept until solved
	strange bool      // a peer without proof can make it
}

func newProblemBook() problemBook {
	return problemBook{
		held: map[string]noted{}, further: map[string]time.Time{},
		logged: &allowance{most: maxLogged}, loggedStrange: &allowance{most: maxStrangeLogged},
	}
}

// set notes a Problem, and reports whether it is new or has changed. If there are too many, one
// Problem stands for all that are not noted: one for those of strangers, and one for the others.
func (b problemBook) set(key string, p clustermesh.Problem, strange bool, life time.Duration, now time.Time) bool {
	n := noted{problem: p, strange: strange}
	if life > 0 {
		n.until = now.Add(life)
	}
	switch {
	case b.has(key):
	case strange && b.size(true) >= maxStrange:
		if _, counted := b.further[key]; counted || len(b.further) < maxFurther {
			b.further[key] = now.Add(ProblemLife)
		}
		key, n.problem = keyFurther, furtherProblem(len(b.further))
		n.until, n.strange = now.Add(ProblemLife), false
	case !strange && b.size(false) >= maxNoted:
		key, n.problem = keyMore, moreProblem()
		n.until = now.Add(ProblemLife)
	}
	old, known := b.held[key]
	b.held[key] = n
	return !known || old.problem != n.problem
}

// size returns how many Problems are strangers', or how many are not.
func (b problemBook) size(strange bool) (n int) {
	for _, x := range b.held {
		if x.strange == strange {
			n++
		}
	}
	return n
}

// shown returns the Problem that is held with a key.
func (b problemBook) shown(key string) (clustermesh.Problem, bool) {
	n, known := b.held[key]
	return n.problem, known
}

func (b problemBook) has(key string) bool {
	_, known := b.held[key]
	return known
}

// count returns how many keys have a prefix.
func (b problemBook) count(prefix string) (n int) {
	for key := range b.held {
		if strings.HasPrefix(key, prefix) {
			n++
		}
	}
	return n
}

func (b problemBook) clear(key string) bool {
	_, known := b.held[key]
	delete(b.held, key)
	return known
}

// clearAll drops all Problems whose keys have a prefix.
func (b problemBook) clearAll(prefix string) {
	maps.DeleteFunc(b.held, func(key string, _ noted) bool { return strings.HasPrefix(key, prefix) })
}

// expire drops the Problems that have expired, and reports whether there were any.
func (b problemBook) expire(now time.Time) (any bool) {
	maps.DeleteFunc(b.further, func(_ string, until time.Time) bool { return now.After(until) })
	for k, n := range b.held {
		if !n.until.IsZero() && now.After(n.until) {
			delete(b.held, k)
			any = true
		}
	}
	return any
}

func (b problemBook) list(now time.Time) []clustermesh.Problem {
	b.expire(now)
	var out []clustermesh.Problem
	for _, n := range b.held {
		out = append(out, n.problem)
	}
	return clustermesh.SortProblems(out)
}

// Problems returns the current Problems.
func (n *Node) Problems(now time.Time) []clustermesh.Problem {
	return clustermesh.SortProblems(slices.Concat(n.problems.list(now), n.trust.OwnProblems()))
}

// allowance is how many lines may be logged until a minute is over.
type allowance struct {
	most  int
	began time.Time
	used  int
}

// take reports whether one more may be logged now, and how many may follow.
func (a *allowance) take(now time.Time) (left int, ok bool) {
	if now.Sub(a.began) >= time.Minute {
		*a = allowance{most: a.most, began: now}
	}
	a.used++
	return a.most - a.used, a.used <= a.most
}

func moreProblem() clustermesh.Problem {
	return problem.Named("gossip", "").Problem(clustermesh.Problem{
		Code:    problem.GossipProblems,
		Message: fmt.Sprintf("there are more than %d problems; others are not shown", maxNoted),
		Try:     "solve those that are shown; if they are all of one cluster, disconnect it",
	})
}

// furtherProblem reports how many Problems of strangers are not shown, as a power of ten: each change is a line
// of the log.
func furtherProblem(n int) clustermesh.Problem {
	size := 1
	for size*10 <= n {
		size *= 10
	}
	return problem.Named("gossip of peers without proof", "").Problem(clustermesh.Problem{
		Code:    problem.GossipProblems,
		Message: fmt.Sprintf("%d of their problems are shown, and there are at least %d more", maxStrange, size),
		Try:     "find the machines that are named; if they are not of the clusterset, replace the gossip key (strait clusterset rotate --gossip-key)",
		Warning: true,
	})
}
