package trust

import (
	"cmp"
	"math"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// verified is what was verified last of each origin, with what can be wrong with all of it, so that
// a look for that need not go through everything.
type verified struct {
	of map[clustermesh.Origin]verification
	// ours are those of the node's own cluster.
	cluster clustermesh.ClusterName
	ours    map[clustermesh.Origin]bool
	// byKey are the nodes whose statements have a key, nearly always one, and shared are the keys of several.
	byKey  map[authority.PublicKey][]clustermesh.Origin
	shared map[authority.PublicKey]bool
	// late are the nodes whose statements may be late. Those of the others are not before lateAt,
	// in Unix seconds.
	late   []clustermesh.Origin
	lateAt int64
	// changed counts the changes of each cluster.
	changed map[clustermesh.ClusterName]uint64
}

func newVerified(own clustermesh.ClusterName) verified {
	return verified{
		of: map[clustermesh.Origin]verification{}, cluster: own, ours: map[clustermesh.Origin]bool{},
		byKey: map[authority.PublicKey][]clustermesh.Origin{}, shared: map[authority.PublicKey]bool{},
		lateAt: math.MaxInt64, changed: map[clustermesh.ClusterName]uint64{},
	}
}

func (v *verified) set(o clustermesh.Origin, x verification) {
	v.delete(o)
	v.changed[o.Cluster]++
	v.of[o] = x
	if o.Cluster == v.cluster {
		v.ours[o] = true
	}
	if o.Node == "" {
		return
	}
	v.lateAt = min(v.lateAt, x.LateFrom())
	if x.Bytes == nil {
		return
	}
	v.byKey[x.Key] = append(v.byKey[x.Key], o)
	v.share(x.Key)
}

func (v *verified) delete(o clustermesh.Origin) {
	x, known := v.of[o]
	if !known {
		return
	}
	v.changed[o.Cluster]++
	delete(v.of, o)
	delete(v.ours, o)
	if all, any := v.byKey[x.Key]; any {
		v.byKey[x.Key] = slices.DeleteFunc(all, func(of clustermesh.Origin) bool { return of == o })
		v.share(x.Key)
	}
}

// share brings what is known of a key up to date.
func (v *verified) share(k authority.PublicKey) {
	switch n := len(v.byKey[k]); n {
	case 0:
		delete(v.byKey, k)
		fallthrough
	case 1:
		delete(v.shared, k)
	default:
		v.shared[k] = true
	}
}

// holders returns the nodes whose statements have a key, sorted.
func (v *verified) holders(k authority.PublicKey) []clustermesh.Origin {
	return slices.SortedFunc(slices.Values(v.byKey[k]), clustermesh.Origin.Compare)
}

// sharedKeys returns the keys of several nodes, and another one, sorted.
func (v *verified) sharedKeys(other authority.PublicKey) []authority.PublicKey {
	out := []authority.PublicKey{other}
	for k := range v.shared {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b authority.PublicKey) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(out)
}

// lateBy returns the nodes whose statements are late at a time, sorted.
func (v *verified) lateBy(now time.Time) (out []clustermesh.Origin) {
	if now.Unix() >= v.lateAt {
		v.late, v.lateAt = nil, math.MaxInt64
		for o, x := range v.of {
			switch {
			case o.Node == "":
			case x.LateFrom() <= now.Unix():
				v.late = append(v.late, o)
			default:
				v.lateAt = min(v.lateAt, x.LateFrom())
			}
		}
		slices.SortFunc(v.late, clustermesh.Origin.Compare)
	}
	for _, o := range v.late {
		if x, known := v.of[o]; known && x.Age(now) >= authority.Late {
			out = append(out, o)
		}
	}
	return out
}

// uids are the clusters of which two have the same id, by the records that were seen.
type uids struct {
	seen       clustermesh.ByOrigin[clustermesh.Record]
	generation uint64 // of the pins
	mixed      map[clustermesh.ClusterName]clustermesh.Problem
}

// update looks at the clusters whose records have changed, and returns a Problem for each of all
// pinned clusters that has one; see mixedUID.
func (u *uids) update(pins authority.Pins, generation uint64, records clustermesh.ByOrigin[clustermesh.Record]) (out []clustermesh.Problem) {
	changed := map[clustermesh.ClusterName]bool{}
	if u.mixed == nil || u.generation != generation {
		u.mixed, u.generation, u.seen = map[clustermesh.ClusterName]clustermesh.Problem{}, generation, clustermesh.ByOrigin[clustermesh.Record]{}
	}
	for o := range records.Since(u.seen) {
		changed[o.Cluster] = true
	}
	u.seen = records
	for c := range changed {
		delete(u.mixed, c)
		if pin, pinned := pins[c]; pinned {
			if p, mixed := mixedUID(c, pin.UID, records); mixed {
				u.mixed[c] = p
			}
		}
	}
	for _, p := range u.mixed {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b clustermesh.Problem) int { return cmp.Compare(a.Object, b.Object) })
	return out
}
