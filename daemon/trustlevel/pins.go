package trustlevel

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/problem"
)

// ParsePins reads the pins of a cluster, a text of Listed. They must contain its own.
func ParsePins(text string, own clustermesh.ClusterName, root *authority.PrivateKey) (authority.Pins, error) {
	pins, err := Pins(text, own)
	if err != nil {
		return nil, err
	}
	pin, found := pins[own]
	switch {
	case !found:
		return nil, fmt.Errorf("it does not list this cluster, %s: its own nodes would not be trusted", own)
	case root != nil && !slices.Contains(pin.Roots, root.Public()):
		return nil, fmt.Errorf("it lists the root %s for this cluster, not %s, which is that of authority.rootFile: its own nodes would not be trusted", pin.Roots[0].Fingerprint(), root.Public().Fingerprint())
	}
	return pins, nil
}

// Nodeless returns the ranges in which other clusters accept endpoints of this one that name no node; nil
// if they accept them anywhere.
func Nodeless(pins authority.Pins, own clustermesh.ClusterName, lax bool) []netip.Prefix {
	if p := pins[own]; !lax && len(p.Pods) > 0 {
		return slices.Concat(p.Pods, p.Endpoints)
	}
	return nil
}

// Remotes returns the pod ranges of all clusters but own, sorted.
func Remotes(pins authority.Pins, own clustermesh.ClusterName) (out []plan.Remote) {
	for _, p := range pins {
		for _, r := range p.Pods {
			if p.Cluster != own {
				out = append(out, plan.Remote{Cluster: p.Cluster, Range: r})
			}
		}
	}
	slices.SortFunc(out, func(a, b plan.Remote) int { return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), a.Range.Compare(b.Range)) })
	return out
}

// LentRoot parses the root key that is lent. It must be in this cluster's own pin; other nodes reject
// what another root signs.
func LentRoot(text string, pinned []authority.PublicKey) (*authority.PrivateKey, error) {
	if text == "" {
		return nil, nil
	}
	root, err := authority.ParsePrivate(text)
	if err != nil {
		return nil, fmt.Errorf("the root that is lent to this node: %w", err)
	}
	if !slices.Contains(pinned, root.Public()) {
		return nil, fmt.Errorf("the root that is lent to this node is %s, and this cluster does not pin it for itself", root.Public().Fingerprint())
	}
	return &root, nil
}

// UnpinnedConfig reports the clusters whose configuration would be accepted if they were pinned.
func UnpinnedConfig(from, members []clustermesh.ClusterName) (out []clustermesh.Problem) {
	for _, c := range from {
		if !slices.Contains(members, c) {
			out = append(out, problem.Cluster(string(c)).Problem(clustermesh.Problem{
				Code: problem.ConfigNotPinned, Field: "source.kubernetes.acceptConfigFrom",
				Message: "is not pinned, so its configuration does not count: without a pin, any holder of the gossip key could write it",
				Try:     fmt.Sprintf("pin it with strait clusterset connect or accept, or take %s out of the list", c),
			}))
		}
	}
	return out
}
