package mirror

import (
	"time"

	"strait.io/strait/clustermesh/written"
)

// retirement is how long a mirror whose name has changed waits for the one of the new name to have
// endpoints.
const retirement = 30 * time.Second

// Retired remembers since when mirrors of an old name wait for those of the new name. The zero value is
// empty.
type Retired map[string]time.Time

// Due returns the writes to carry out now, without those that are early and have not waited long enough.
func (r *Retired) Due(ops []written.Op, now time.Time) (due []written.Op) {
	waiting := Retired{}
	for _, o := range ops {
		if o.Early {
			since, known := (*r)[o.String()]
			if !known {
				since = now
			}
			if waiting[o.String()] = since; now.Sub(since) < retirement {
				continue
			}
		}
		due = append(due, o)
	}
	*r = waiting
	return due
}
