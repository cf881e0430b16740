package clustermesh

import "strait.io/strait/internal/problem"

// Problem is something wrong that a person should see. It never stops the rest from working.
type Problem = problem.Problem

// SortProblems orders problems and drops repeats.
func SortProblems(ps []Problem) []Problem { return problem.Sort(ps) }
