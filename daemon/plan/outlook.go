package plan

import (
	"cmp"
	"maps"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
)

// Outlook is what a cluster's own endpoints bear of one port and IP family of a service, for the cluster
// as a whole: of no node, and without the ramp.
type Outlook struct {
	Port   clustermesh.ServicePort
	Family clustermesh.Family
	Own    locality.Part
	// Whole is the share that they would have if nothing was wrong with any of them; the same as Own's
	// while enough of them are healthy.
	Whole float64
	// Others are the other clusters that get new connections, those that get most first.
	Others []clustermesh.ClusterName
}

// Outlook returns an element per port and family; none if this cluster does not offer the service.
func (d *demand) Outlook() (out []Outlook) {
	own := d.stand.self.Cluster
	if _, offers := d.offered(own); !offers {
		return nil
	}
	anywhere := locality.Self{Cluster: own}
	members, doubles := d.admit()
	for _, port := range d.ports {
		for _, family := range []clustermesh.Family{clustermesh.IPv4, clustermesh.IPv6} {
			cs := slices.DeleteFunc(d.candidates(members, doubles, port, family), func(c locality.Candidate) bool {
				return clustermesh.FamilyOf(c.Addr.Addr()) != family
			})
			now := locality.Select(anywhere, cs, d.prefer, locality.Ramp{})
			o := Outlook{Port: port, Family: family, Own: now.Part(own), Others: without(now.Shares(), own)}
			if o.Whole = o.Own.Share; !d.prefer.Enough(o.Own) {
				o.Whole = locality.Select(anywhere, mended(cs, own), d.prefer, locality.Ramp{}).Part(own).Share
			}
			out = append(out, o)
		}
	}
	return out
}

// mended returns candidates of which nothing is wrong with those of one cluster.
func mended(cs []locality.Candidate, of clustermesh.ClusterName) []locality.Candidate {
	out := slices.Clone(cs)
	for i := range out {
		if c := &out[i]; c.Cluster == of && !c.Terminating {
			c.Ready, c.Serving, c.Dead, c.Contact, c.Fault, c.Impaired, c.Drained = true, true, false, clustermesh.Alive, "", false, 0
		}
	}
	return out
}

// without returns the clusters of some shares but one, those with most first.
func without(shares map[clustermesh.ClusterName]float64, own clustermesh.ClusterName) []clustermesh.ClusterName {
	out := slices.SortedFunc(maps.Keys(shares), func(a, b clustermesh.ClusterName) int {
		return cmp.Or(cmp.Compare(shares[b], shares[a]), cmp.Compare(a, b))
	})
	return slices.DeleteFunc(out, func(c clustermesh.ClusterName) bool { return c == own })
}
