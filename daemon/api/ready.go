package api

import "strings"

// Readiness is whether the node serves its plan.
type Readiness struct {
	// Planned is true once there is a plan, Ready once the hooks are attached and a plan has been
	// applied.
	Planned, Ready bool
	// Waiting is what the daemon waits for, as in Status.
	Waiting []string
}

// String returns "ok", or what is missing.
func (r Readiness) String() string {
	switch {
	case r.Ready:
		return "ok"
	case !r.Planned:
		return "not ready: no plan yet"
	case len(r.Waiting) > 0:
		return "not ready: waiting for " + strings.Join(r.Waiting, ", ")
	}
	return "not ready: the first plan is not applied yet"
}
