package plan

import (
	"slices"

	"strait.io/strait/clustermesh"
)

// noted is the state of the last plan, and which records have claims or Problems: few have, and a
// plan need not look at the others.
type noted struct {
	records  clustermesh.ByOrigin[clustermesh.Record]
	contacts clustermesh.ByOrigin[clustermesh.Contact]
	// claimants are the origins that claim nodes silent, and troubled those whose records have
	// Problems.
	claimants, troubled clustermesh.ByOrigin[bool]
	// dead are the nodes whose machines are dead. It is never changed.
	dead map[clustermesh.Origin]bool
}

// update takes note of a state. It returns the origins of which something may have changed: the
// record, the contact, whether the machine is dead, or how their cluster drains them.
func (x *noted) update(s clustermesh.State) (news map[clustermesh.Origin]bool) {
	news = map[clustermesh.Origin]bool{}
	claimants, troubled := x.claimants.Draft(), x.troubled.Draft()
	for o := range s.Records.Since(x.records) {
		r := s.Records.Get(o)
		mark(&claimants, o, len(r.Content.Silent) > 0)
		mark(&troubled, o, len(r.Problems) > 0)
		news[o] = true
		if o.Node == "" && drainsOtherwise(x.records.Get(o).Content, r.Content) {
			for n := range s.Records.Of(o.Cluster) {
				news[n] = true
			}
		}
	}
	for o := range s.Contacts.Since(x.contacts) {
		news[o] = true
	}
	x.records, x.contacts, x.claimants, x.troubled = s.Records, s.Contacts, claimants.Share(), troubled.Share()
	dead := s.DeadBy(x.claimants)
	for o := range dead {
		if !x.dead[o] {
			news[o] = true
		}
	}
	for o := range x.dead {
		if !dead[o] {
			news[o] = true
		}
	}
	x.dead = dead
	return news
}

func mark(d *clustermesh.Draft[bool], o clustermesh.Origin, is bool) {
	if is {
		d.Set(o, true)
	} else {
		d.Delete(o)
	}
}

// drainsOtherwise reports whether two contents of a cluster's record drain different nodes.
func drainsOtherwise(a, b clustermesh.Content) bool {
	if (a.Drain == nil) != (b.Drain == nil) || a.Drain != nil && *a.Drain != *b.Drain {
		return true
	}
	return !slices.Equal(a.Drains, b.Drains)
}
