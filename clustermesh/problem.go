package clustermesh

import "strait.io/strait/internal/problem"

// Problem is something wrong that a person should see. It never stops the rest from working.
type Problem = problem.Problem

// SortProblems orders problems and drops repeats.
func SortProblems(ps []Problem) []Problem { return problem.Sort(ps) }

// Ref refers to the node in a Problem, or to the cluster if it has no node.
func (o Origin) Ref() problem.Ref {
	if o.Node == "" {
		return problem.Cluster(string(o.Cluster))
	}
	return problem.Node(string(o.Cluster), string(o.Node))
}

// RecordRef refers to what the origin publishes.
func (o Origin) RecordRef() problem.Ref { return problem.Record(string(o.Cluster), string(o.Node)) }

// Ref refers to the object of a kind that belongs to the service.
func (s ServiceName) Ref(kind string) problem.Ref { return problem.Object(kind, s.Namespace, s.Name) }
