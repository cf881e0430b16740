package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// tierOrder lists the tiers of Frontend.Tier from near to far. Tiers that are not in it sort last.
var tierOrder = []string{"node", "zone", "region", "cluster", "clusterset", "unreachable"}

// Tier is the endpoints of one tier of a frontend.
type Tier struct {
	Name string
	// Total is how many of Endpoints have the frontend's IP family; Ready is how many of these are
	// ready.
	Ready     int
	Total     int
	Share     float64
	Endpoints []Endpoint
}

// Tiers groups a frontend's endpoints by tier, near to far. Within a tier, endpoints sort by share,
// largest first, then by address.
func (f Frontend) Tiers() []Tier {
	byName := map[string]*Tier{}
	for _, e := range f.Endpoints {
		t := byName[e.Tier]
		if t == nil {
			t = &Tier{Name: e.Tier}
			byName[e.Tier] = t
		}
		if f.SameFamily(e) {
			t.Total++
		}
		if e.Ready {
			t.Ready++
		}
		t.Share += e.Share
		t.Endpoints = append(t.Endpoints, e)
	}
	out := make([]Tier, 0, len(byName))
	for _, t := range byName {
		slices.SortStableFunc(t.Endpoints, func(a, b Endpoint) int {
			return cmp.Or(cmp.Compare(b.Share, a.Share), a.Addr.Compare(b.Addr))
		})
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Tier) int {
		return cmp.Or(cmp.Compare(tierRank(a.Name), tierRank(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func tierRank(name string) int {
	if i := slices.Index(tierOrder, name); i >= 0 {
		return i
	}
	return len(tierOrder)
}

// Destination describes where new connections to the frontend go: tiers with their share, and the
// clusters.
func (f Frontend) Destination() string {
	var parts, clusters []string
	for _, t := range f.Tiers() {
		if t.Share <= 0 {
			continue
		}
		parts = append(parts, t.Name+" "+Percent(t.Share))
		for _, e := range t.Endpoints {
			if e.Share > 0 && !slices.Contains(clusters, e.Cluster) {
				clusters = append(clusters, e.Cluster)
			}
		}
	}
	if len(parts) == 0 {
		return Bad + " nowhere"
	}
	return strings.Join(parts, " · ") + " (" + strings.Join(clusters, " ") + ")"
}

// Why describes in a few words why connections go there.
func (f Frontend) Why() string {
	if !f.InKernel {
		return Bad + " the kernel's map differs from the plan"
	}
	var passed []string
	for _, t := range f.Tiers() {
		switch {
		case t.Total == 0:
			continue
		case t.Share > 0 && len(passed) > 0:
			return strings.Join(passed, ", ")
		case t.Share > 0 && t.Share < 0.9995: // its first endpoint has the reason why not all
			return strings.TrimPrefix(strings.TrimPrefix(t.Endpoints[0].Reason, "ready; "), "ready, ")
		case t.Share > 0:
			return "nearest tier with endpoints"
		}
		passed = append(passed, t.passedOver())
	}
	if len(passed) == 0 && len(f.Endpoints) > 0 {
		return "no " + f.Family() + " endpoint anywhere: connections are refused"
	}
	if len(passed) == 0 {
		return "no endpoint anywhere: connections are refused"
	}
	return strings.Join(passed, ", ") + ": connections are refused"
}

// passedOver returns why a tier carries nothing: none of it is ready, or what its first ready endpoint
// lacks.
func (t Tier) passedOver() string {
	name := cmp.Or(t.Name, "no tier")
	if i := slices.IndexFunc(t.Endpoints, func(e Endpoint) bool { return e.Ready }); i >= 0 {
		return name + ": " + t.Endpoints[i].Reason
	}
	return fmt.Sprintf("%s 0/%d ready", name, t.Total)
}
