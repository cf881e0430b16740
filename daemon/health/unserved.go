package health

import (
	"fmt"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/problem"
)

// unservedAfter is how long a Service must have nothing behind it to be a Problem. Pods that are replaced can
// leave it without any for a moment.
const unservedAfter = 5 * time.Second

// Unserved knows since when imported Services have nothing behind them.
type Unserved map[clustermesh.ServiceName]time.Time

// Problems reports the imported Services of which no endpoint takes connections, and how soon there may be
// more to report; 0 if that is not known.
func (u *Unserved) Problems(r plan.Result, now time.Time) (out []problem.Problem, again time.Duration) {
	all := r.Unserved()
	before := *u
	*u = make(Unserved, len(all))
	for _, i := range all {
		since, was := before[i.Service]
		if !was {
			since = now
		}
		(*u)[i.Service] = since
		if wait := unservedAfter - now.Sub(since); wait <= 0 {
			out = append(out, unserved(i))
		} else if again == 0 || wait < again {
			again = wait
		}
	}
	return out, again
}

func unserved(i *plan.Import) problem.Problem {
	why := "no cluster has an endpoint of it"
	if fs := i.Frontends(); len(fs) > 0 && len(fs[0].Choice.Verdicts) > 0 {
		why = fmt.Sprintf("none of its %d endpoints takes connections", len(fs[0].Choice.Verdicts))
	}
	return i.Service.Ref("ServiceImport").Problem(problem.Problem{
		Code:    problem.ServiceUnserved,
		Message: why + ": new connections to it are refused",
		Try:     "start pods of it in one of the clusters that export it; see why each is not used with: strait explain " + i.Service.String(),
		Warning: true,
	})
}
