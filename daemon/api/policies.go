package api

import (
	"slices"
)

// Policy is a ServicePolicy, or another system's object that means one, with what this cluster does by
// it.
type Policy struct {
	Name string `json:"name"`
	// As is "import", "mirror" or "join".
	As string `json:"as"`
	// From and To are the clusters that it names; nil means all.
	From []string `json:"from,omitempty"`
	To   []string `json:"to,omitempty"`
	// Selected is how many Services of this cluster it selects, Shared how many of these it shares, and
	// Joined how many get other clusters' endpoints.
	Selected int `json:"selected"`
	Shared   int `json:"shared"`
	Joined   int `json:"joined,omitempty"`
	// Skipped are the first that it selects and does not share, as NAMESPACE/NAME, and the first that
	// others share and that it does not make here, as CLUSTER/NAMESPACE/NAME. SkippedMore counts the rest.
	Skipped     []SkippedService `json:"skipped,omitempty"`
	SkippedMore int              `json:"skippedMore,omitempty"`
	// Others are the Services that other clusters share under a policy of this name, as
	// NAMESPACE/NAME of CLUSTER, and that this cluster uses.
	Others []string `json:"others,omitempty"`
	// Mirrored is how many mirrors of these the cluster has, Imported how many imports, as its leader publishes.
	Mirrored int `json:"mirrored,omitempty"`
	Imported int `json:"imported,omitempty"`
	// Elsewhere has the results of the policies of this name in other clusters, from their leaders.
	Elsewhere []PolicyElsewhere `json:"elsewhere,omitempty"`
}

// PolicyElsewhere is what another cluster's leader has made by a policy of the same name, and leaves out.
type PolicyElsewhere struct {
	Cluster     string           `json:"cluster"`
	Mirrored    int              `json:"mirrored,omitempty"`
	Imported    int              `json:"imported,omitempty"`
	Skipped     []SkippedService `json:"skipped,omitempty"`
	SkippedMore int              `json:"skippedMore,omitempty"`
}

// Made is how many Services of other clusters the policy has brought into this one: mirrors, imports, or
// own Services that reach them too.
func (p Policy) Made() int { return p.Mirrored + p.Imported + p.Joined }

// SkippedService is a Service that a policy leaves out.
type SkippedService struct {
	Service string `json:"service"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// PolicyList is the answer of GET /v1/policies, sorted by name.
type PolicyList struct {
	Meta
	SeenFrom Viewpoint `json:"seenFrom"`
	Items    []Policy  `json:"items"`
}

// NewPolicyList makes an answer of policies, which are sorted already.
func NewPolicyList(from Viewpoint, items []Policy) *PolicyList {
	return &PolicyList{Meta{APIVersion, KindPolicies}, from, orEmpty(items)}
}

// Named returns the policy of a name, and false if there is none.
func (l *PolicyList) Named(name string) (Policy, bool) {
	i := slices.IndexFunc(l.Items, func(p Policy) bool { return p.Name == name })
	if i < 0 {
		return Policy{}, false
	}
	return l.Items[i], true
}
