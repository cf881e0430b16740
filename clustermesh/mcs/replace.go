package mcs

import (
	"maps"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/written"
)

// Replaces reports whether an operation may write what takes the place of what a deletion removes.
// If it failed, the deletion must wait. A slice does not wait: see Retire.
func Replaces(o, deletion written.Op) bool {
	return deletion.Service() != nil && ExportOf(o) == nil && !Foreign(o) && o.Verb != written.Delete && o.Verb != written.ApplyStatus
}

// Retire returns what to do, after some writes failed, with a slice that is not wanted any more:
// delete it, or keep just the endpoints that those writes should have moved to another slice. It
// returns false if the slice has no others.
func Retire(have *discoveryv1.EndpointSlice, failed []written.Op) (written.Op, bool) {
	stay := unreplaced(have, failed)
	next := &discoveryv1.EndpointSlice{ObjectMeta: meta(have)}
	if len(stay) == 0 {
		return written.Op{Verb: written.Delete, Kind: written.EndpointSlice, Object: next}, true
	}
	next.AddressType, next.Ports, next.Endpoints = have.AddressType, have.Ports, stay
	next.Labels = maps.Clone(have.Labels)
	maps.DeleteFunc(next.Labels, func(key, _ string) bool { return !slices.Contains(sliceLabels, key) })
	next.OwnerReferences = slices.DeleteFunc(slices.Clone(have.OwnerReferences), func(o metav1.OwnerReference) bool {
		return o.Kind != mcsv1beta1.ServiceImportKindName
	})
	return written.Op{Verb: written.Apply, Kind: written.EndpointSlice, Object: next, Force: true}, len(stay) < len(have.Endpoints)
}

// Shrink returns the update of a slice after some writes failed: besides the endpoints that are
// wanted in it, it keeps those that those writes should have moved to another slice of the same
// ports.
func Shrink(have *discoveryv1.EndpointSlice, update written.Op, failed []written.Op) written.Op {
	want := update.Slice()
	if !equality.Semantic.DeepEqual(have.Ports, want.Ports) {
		return update // what it has are other listeners
	}
	failed = slices.DeleteFunc(slices.Clone(failed), func(f written.Op) bool {
		return f.Slice() == nil || !equality.Semantic.DeepEqual(f.Slice().Ports, want.Ports)
	})
	keep := slices.DeleteFunc(unreplaced(have, failed), func(h discoveryv1.Endpoint) bool {
		return slices.ContainsFunc(want.Endpoints, func(w discoveryv1.Endpoint) bool { return slices.Equal(w.Addresses, h.Addresses) })
	})
	if len(keep) == 0 {
		return update
	}
	update.Object = want.DeepCopy()
	update.Slice().Endpoints = append(update.Slice().Endpoints, keep...)
	return update
}

func unreplaced(s *discoveryv1.EndpointSlice, failed []written.Op) (out []discoveryv1.Endpoint) {
	moves := map[string]bool{}
	for _, o := range failed {
		if o.Slice() == nil || o.Verb == written.Delete || !sameSet(o.Slice(), s) {
			continue
		}
		for _, e := range o.Slice().Endpoints {
			for _, a := range e.Addresses {
				moves[a] = true
			}
		}
	}
	for _, e := range s.Endpoints {
		if slices.ContainsFunc(e.Addresses, func(a string) bool { return moves[a] }) {
			out = append(out, e)
		}
	}
	return out
}

// sameSet reports whether two slices of strait's are in one set.
func sameSet(a, b *discoveryv1.EndpointSlice) bool {
	return !slices.ContainsFunc(sliceLabels, func(key string) bool { return a.Labels[key] != b.Labels[key] })
}
