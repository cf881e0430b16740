package turn

import (
	"time"

	"strait.io/strait/clustermesh"
)

// CanLead reports whether a daemon that is heard publishes that it can lead the cluster.
func CanLead(c clustermesh.ClusterName, s clustermesh.State) bool {
	for o, contact := range s.Contacts.All() {
		n := s.Records.Get(o).Content.Node
		if o.Cluster == c && contact == clustermesh.Alive && n != nil && !n.Follower {
			return true
		}
	}
	return false
}

// leaderGrace is how long a cluster may have no daemon that can lead before that is a Problem: pods
// take a while to be replaced.
const leaderGrace = time.Minute

// Leaderless measures how long no daemon of the cluster can lead.
type Leaderless struct {
	since time.Time // zero while one can
}

// Note takes whether one can lead now. Since is set if none could for too long; otherwise again is how
// soon to ask again, 0 if one can.
func (l *Leaderless) Note(can bool, now time.Time) (since time.Time, again time.Duration) {
	if can {
		l.since = time.Time{}
		return time.Time{}, 0
	}
	if l.since.IsZero() {
		l.since = now
	}
	if left := leaderGrace - now.Sub(l.since); left > 0 {
		return time.Time{}, left
	}
	return l.since, 0
}
