// Package check turns what the daemons of a clusterset answer into a list of what is fine and what
// is not.
//
// Inputs are the status of each node, or why there is none; outputs are checks in categories, each
// with an affirmative title, the nodes where it does not hold, and what to do. Pure: it must not
// know how the status was had, nor how checks are printed.
package check

import (
	"cmp"
	"fmt"
	"slices"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

// Node is what one node of the clusterset answered.
type Node struct {
	// Name is CLUSTER/NODE, or what was asked if that is not known.
	Name, Cluster string
	// Status is nil if there is no answer; Error is why, and Try what to do.
	Status     *api.Status
	Error, Try string
}

// State is the outcome of a check.
type State string

// Outcomes, from good to bad.
const (
	OK      State = "ok"
	Warning State = "warning"
	Unknown State = "unknown"
	Failed  State = "failed"
)

// Check is one thing that holds, or does not.
type Check struct {
	Category string `json:"category"`
	// Title says what holds if all is well.
	Title string `json:"title"`
	State State  `json:"state"`
	// Findings are what is against it; empty if it holds.
	Findings []Finding `json:"findings,omitempty"`
}

// Finding is one thing that is against a check.
type Finding struct {
	// Nodes are where it was found; empty if it is about no node.
	Nodes []string `json:"nodes,omitempty"`
	// Code is that of the problem, which strait help explains; empty if it is none.
	Code    problem.Code `json:"code,omitempty"`
	Message string       `json:"message"`
	Try     string       `json:"try,omitempty"`
	state   State
}

// Severity is how bad it is: Warning, Unknown or Failed.
func (f Finding) Severity() State { return f.state }

// Run makes all checks, by category.
func Run(nodes []Node, client string) []Check {
	c := checker{nodes: nodes, client: client}
	c.daemons()
	c.kernels()
	c.datapaths()
	c.clusterset()
	c.problems()
	return c.checks
}

// Worst returns the worst outcome.
func Worst(checks []Check) State {
	worst := OK
	for _, c := range checks {
		if rank(c.State) > rank(worst) {
			worst = c.State
		}
	}
	return worst
}

func rank(s State) int { return slices.Index([]State{OK, Warning, Unknown, Failed}, s) }

type checker struct {
	nodes  []Node
	client string
	checks []Check
	taken  []problem.Code // those that a check of its own has
}

// add adds a check, which holds if there are no findings. Equal findings of several nodes become
// one.
func (c *checker) add(category, title string, findings ...Finding) {
	check := Check{Category: category, Title: title, State: OK}
	for _, f := range findings {
		same := func(o Finding) bool {
			return o.Code == f.Code && o.Message == f.Message && o.Try == f.Try && o.state == f.state
		}
		if i := slices.IndexFunc(check.Findings, same); i >= 0 {
			check.Findings[i].Nodes = append(check.Findings[i].Nodes, f.Nodes...)
		} else {
			check.Findings = append(check.Findings, f)
		}
		if rank(f.state) > rank(check.State) {
			check.State = f.state
		}
	}
	slices.SortStableFunc(check.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(b.state), rank(a.state)), cmp.Compare(a.Code, b.Code))
	})
	c.checks = append(c.checks, check)
}

// each collects what is found at the nodes that answered.
func (c *checker) each(find func(n Node, s *api.Status) []Finding) (out []Finding) {
	for _, n := range c.nodes {
		if n.Status == nil {
			continue
		}
		for _, f := range find(n, n.Status) {
			f.Nodes = []string{n.Name}
			out = append(out, f)
		}
	}
	return out
}

// either collects the problems with these codes, and what is found at the nodes that report none of
// them. What a daemon reports is one finding, of the check that it is about: taken keeps the list of
// all problems from having it again.
func (c *checker) either(codes []problem.Code, find func(n Node, s *api.Status) []Finding) []Finding {
	c.taken = append(c.taken, codes...)
	return c.each(func(n Node, s *api.Status) (out []Finding) {
		for _, p := range s.Problems {
			if slices.Contains(codes, p.Code) {
				out = append(out, reported(p))
			}
		}
		if len(out) == 0 && find != nil {
			out = find(n, s)
		}
		return out
	})
}

func found(state State, try, format string, args ...any) []Finding {
	return []Finding{{Message: fmt.Sprintf(format, args...), Try: try, state: state}}
}
