package record

import (
	"cmp"
	"slices"

	"strait.io/strait/clustermesh"
)

// Judge knows what the origin of a record may claim. Package authority makes one from pins and
// statements, and another one where nothing is pinned.
type Judge interface {
	// Node returns the part of what a node says about itself that is its own.
	Node(*clustermesh.Node) *clustermesh.Node
	// Endpoints returns the endpoints that the origin may have, in the zone where they are.
	Endpoints([]clustermesh.Endpoint) []clustermesh.Endpoint
	// Service reports whether the receiver accepts a Service of the origin. What is how Problems call
	// it.
	Service(what string, s clustermesh.ServiceName) bool
	// ClusterIPs returns mirrored Services without the ClusterIPs that the origin cannot have.
	ClusterIPs([]clustermesh.Export) []clustermesh.Export
	// Configures reports whether the receiver accepts the origin's configuration.
	Configures() bool
	// Quota returns how many elements a quota allows.
	Quota(Quota) int
	// TooMany records that a field has more elements than that.
	TooMany(field string, has, most int)
	// NoRule records that a field is left out because it has no row.
	NoRule(field string)
}

// Quota is what limits the number of elements that an origin may claim.
type Quota int

// The quotas of origins. QuotaShared is for all lists that have it, in sum.
const (
	Unlimited Quota = iota
	QuotaNodes
	QuotaEndpoints
	QuotaShared
)

// Admit returns the part of a content that its origin may claim. It does not change what the content
// refers to.
func Admit(j Judge, c clustermesh.Content) clustermesh.Content { return kinds.admit(j, c) }

// admit walks the rows: first over what may be claimed, then over how much.
func (t *table) admit(j Judge, c clustermesh.Content) clustermesh.Content {
	t.refuse(&c, j.NoRule)
	shared := 0
	for _, k := range t.kinds {
		k.admit(j, &c)
		if k.about().quota == QuotaShared {
			shared += k.size(&c)
		}
	}
	room := j.Quota(QuotaShared)
	over := shared > room
	for _, k := range t.kinds {
		switch q := k.about().quota; {
		case q == Unlimited:
		case q != QuotaShared:
			k.cut(j, &c, j.Quota(q))
		case over:
			k.cut(j, &c, room)
			room -= k.size(&c)
		}
	}
	return c
}

// unrestricted is the rule for what only the origin itself can know.
func unrestricted[T any](_ Judge, _ *list[T], all []T) []T { return all }

// services is the rule for Services that a cluster shares: the receiver accepts those of some
// namespaces.
func services[T any](j Judge, r *list[T], all []T) []T {
	return Kept(all, func(e *T) bool { return j.Service(r.what, r.key(e).Service) })
}

// mirrored is the rule for Services that also lead to ClusterIPs.
func mirrored(j Judge, r *list[clustermesh.Export], all []clustermesh.Export) []clustermesh.Export {
	return j.ClusterIPs(services(j, r, all))
}

// endpoints is the rule for the addresses behind Services.
func endpoints(j Judge, _ *list[clustermesh.Endpoint], all []clustermesh.Endpoint) []clustermesh.Endpoint {
	return j.Endpoints(all)
}

// configuration is the rule for objects that configure the receiver.
func configuration(j Judge, _ *list[clustermesh.ConfigObject], all []clustermesh.ConfigObject) []clustermesh.ConfigObject {
	if !j.Configures() {
		return nil
	}
	return Kept(all, func(o *clustermesh.ConfigObject) bool { return j.Service(o.Kind, o.Name) })
}

// place is the rule for what a node says about itself.
func place(j Judge, n *clustermesh.Node) *clustermesh.Node {
	if n == nil {
		return nil
	}
	return j.Node(n)
}

// unrestrictedValue is unrestricted for a field that is not a list.
func unrestrictedValue[F any](_ Judge, value F) F { return value }

// oldest returns the exports that stay if at most so many may: one more never takes the place of
// another.
func oldest(all []clustermesh.Export, most int) []clustermesh.Export {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b clustermesh.Export) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), a.Service.Compare(b.Service))
	})
	all = all[:min(len(all), most)]
	slices.SortStableFunc(all, func(a, b clustermesh.Export) int { return a.Service.Compare(b.Service) })
	return all
}

// Kept returns the elements for which ok is true: the list itself if it is true for all.
func Kept[T any](all []T, ok func(*T) bool) []T {
	for i := range all {
		if ok(&all[i]) {
			continue
		}
		out := slices.Clone(all[:i])
		for j := i + 1; j < len(all); j++ {
			if ok(&all[j]) {
				out = append(out, all[j])
			}
		}
		return out
	}
	return all
}
