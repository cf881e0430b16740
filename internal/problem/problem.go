// Package problem is the one way in which strait tells people that something is wrong: which
// object, which field, what, and what to do about it.
//
// Pure leaf: it knows no Kubernetes, no kernel and no other package of strait. So the half that
// knows clusters and the half that knows the kernel report in the same form.
package problem

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// Problem is something wrong that a person should see. It never stops everything else from working.
type Problem struct {
	// Code names the kind of problem. docs/problems.md explains it.
	Code Code `json:"code"`
	// Object is the kind and name of what is wrong: "ServiceExport default/serve",
	// "node us-east/n1".
	Object string `json:"object"`
	// Ref is the same for programs; absent if Object has no name, such as "seeds". See Ref.Problem.
	Ref Ref `json:"ref,omitzero"`
	// Field is the path inside the object, if one field is to blame: "spec.ports[0].port".
	Field string `json:"field,omitempty"`
	// File is where the object was read from, if from a file.
	File string `json:"file,omitempty"`
	// Message says what is wrong. Try says what to do about it.
	Message string `json:"message"`
	Try     string `json:"try,omitempty"`
	// Warning marks a Problem that leaves everything working.
	Warning bool `json:"warning,omitempty"`
}

// String returns the problem as one line: what, where, what to do.
func (p Problem) String() string {
	if p.Try == "" {
		return p.Finding()
	}
	return p.Finding() + "; " + p.Try
}

// Finding says what is wrong and where, for callers that show Try separately.
func (p Problem) Finding() string {
	var parts []string
	for _, s := range []string{p.File, p.Object, p.Field, p.Message} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// Severity returns "error" or "warning".
func (p Problem) Severity() string {
	if p.Warning {
		return "warning"
	}
	return "error"
}

// Compare gives problems a stable order: errors first, then causes before what follows from them, then
// by place and text.
func (p Problem) Compare(q Problem) int {
	rank := func(p Problem) int {
		if p.Warning {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(p), rank(q)), cmp.Compare(p.Code.Depth(), q.Code.Depth()), strings.Compare(p.Object, q.Object),
		strings.Compare(p.File, q.File), strings.Compare(p.Field, q.Field), strings.Compare(p.Message, q.Message))
}

// Sort returns the problems in order, clean and without duplicates. All that is shown goes through it.
func Sort(ps []Problem) []Problem {
	ps = slices.Clone(ps)
	for i, p := range ps {
		ps[i] = p.Clean()
	}
	slices.SortFunc(ps, Problem.Compare)
	return slices.Compact(ps)
}

// Strict joins Problems and an error into one error, for callers that treat a refused object like
// any other failure: clean-up, tests and benchmarks.
func Strict(ps []Problem, err error) error {
	errs := make([]error, 0, len(ps)+1)
	for _, p := range ps {
		errs = append(errs, errors.New(p.String()))
	}
	return errors.Join(append(errs, err)...)
}
