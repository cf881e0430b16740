package mesh

import (
	"fmt"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// rivals are what others claim of what a node keeps, by the node and the field that makes it the node's.
type rivals map[claimedBy[string]][]string

// add notes that a node lost something to another one, which keeps it.
func (r rivals) add(keeper clustermesh.Origin, field string, loser clustermesh.Origin, what any) {
	k := claimedBy[string]{keeper, field}
	r[k] = append(r[k], fmt.Sprintf("%s claims %v", called(loser), what))
}

// problems reports of each node that keeps something who else claims it: one Problem for each field.
func (r rivals) problems() (out []clustermesh.Problem) {
	for k, claims := range r {
		slices.Sort(claims)
		more := ""
		if n := len(claims) - 1; n > 0 {
			more = fmt.Sprintf(" (and there are %d more such claims)", n)
		}
		p := contested(k.by, k.what, claims[0]+more+", and it keeps what is its own",
			"correct the node that is wrong; if it was not by mistake, revoke its key, or evict its cluster")
		if k.by.Cluster == "" { // a guest
			p = problem.Named(called(k.by), "").Problem(p)
		}
		out = append(out, p)
	}
	return out
}
