package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// View is what is read through one context: a cluster as its API server describes it, and the
// bundle that it holds.
type View struct {
	Context string
	Cluster Cluster
	// Regions and Zones are those of its nodes, sorted, with "" if a node has no such label.
	Regions, Zones []string
	// Have is the bundle of its Secret; nil if there is none.
	Have *Bundle
}

// Merge returns one bundle for the clusters of all views. If they cannot be joined, the error has
// every reason. fresh becomes the key if no cluster has one yet.
func Merge(views []View, fresh Key) (Bundle, error) {
	if err := errors.Join(twins(views), ids(views)); err != nil {
		return Bundle{}, err
	}
	views = withoutFormer(views)
	key, err := chooseKey(views, fresh)
	if err != nil {
		return Bundle{}, err
	}
	out := Bundle{Version: Version, GossipKey: key}
	given := map[string]bool{}
	for _, v := range views {
		given[v.Cluster.ID] = true
		out.Clusters = append(out.Clusters, v.Cluster)
	}
	// Members without a view are kept as the others know them.
	for _, v := range views {
		if v.Have == nil || v.Have.GossipKey != key {
			continue
		}
		for _, c := range v.Have.Clusters {
			if !given[c.ID] {
				given[c.ID] = true
				out.Clusters = append(out.Clusters, c)
			}
		}
	}
	out = out.sorted()
	return out, errors.Join(out.check(), uids(out), overlaps(out))
}

// withoutFormer drops from the views' bundles each member that has a view under another id by now.
func withoutFormer(views []View) []View {
	id := map[string]string{} // by UID
	for _, v := range views {
		id[v.Cluster.UID] = v.Cluster.ID
	}
	views = slices.Clone(views)
	for i, v := range views {
		if v.Have != nil {
			have := *v.Have
			have.Clusters = slices.DeleteFunc(slices.Clone(have.Clusters), func(c Cluster) bool {
				now, shown := id[c.UID]
				return c.UID != "" && shown && now != c.ID
			})
			views[i].Have = &have
		}
	}
	return views
}

// twins returns an error for each cluster that is behind two contexts.
func twins(views []View) error {
	var errs []error
	for i, a := range views {
		for _, b := range views[:i] {
			if a.Cluster.UID != "" && a.Cluster.UID == b.Cluster.UID {
				errs = append(errs, fmt.Errorf("contexts %s and %s are the same cluster; name each cluster once", b.Context, a.Context))
			}
		}
	}
	return errors.Join(errs...)
}

// ids returns an error for every two clusters with the same id.
func ids(views []View) error {
	var errs []error
	for i, a := range views {
		for _, b := range views[:i] {
			if a.Cluster.ID == b.Cluster.ID && (a.Cluster.UID == "" || a.Cluster.UID != b.Cluster.UID) {
				errs = append(errs, fmt.Errorf("contexts %s and %s both have the cluster id %s; give one of them another id: strait upgrade --context %s --cluster NAME",
					b.Context, a.Context, a.Cluster.ID, a.Context))
			}
		}
	}
	return errors.Join(errs...)
}

// uids returns an error for each member that has no view and that the others know under two ids.
func uids(b Bundle) error {
	var errs []error
	for i, x := range b.Clusters {
		for _, y := range b.Clusters[:i] {
			if x.UID != "" && x.UID == y.UID {
				errs = append(errs, fmt.Errorf("clusters %s and %s have the same UID %s: the cluster was renamed, and no context says which id is current; name its context too: --context NAME",
					y.ID, x.ID, x.UID))
			}
		}
	}
	return errors.Join(errs...)
}

// chooseKey picks the key of the largest clusterset among the views, so that the fewest daemons
// restart; among equals, that of the first view. It is an error if a cluster without a view would
// be left behind with another key.
func chooseKey(views []View, fresh Key) (Key, error) {
	members := map[Key]map[string]bool{}
	var order []Key
	for _, v := range views {
		if v.Have == nil {
			continue
		}
		k := v.Have.GossipKey
		if members[k] == nil {
			members[k] = map[string]bool{}
			order = append(order, k)
		}
		members[k][v.Cluster.ID] = true
		for _, c := range v.Have.Clusters {
			members[k][c.ID] = true
		}
	}
	if len(order) == 0 {
		return fresh, nil
	}
	best := slices.MinFunc(order, func(a, b Key) int { // among equals, the first
		return cmp.Compare(len(members[b]), len(members[a]))
	})
	var left []string
	for _, k := range order {
		for id := range members[k] {
			if k != best && !slices.ContainsFunc(views, func(v View) bool { return v.Cluster.ID == id }) {
				left = append(left, id)
			}
		}
	}
	if slices.Sort(left); len(left) > 0 {
		return "", fmt.Errorf("two clustersets would become one, with a new gossip key for the smaller; name the contexts of its other clusters too: %s",
			strings.Join(slices.Compact(left), ", "))
	}
	return best, nil
}

// overlaps returns an error for every two clusters with overlapping pod ranges: one address could
// belong to two pods.
func overlaps(b Bundle) error {
	var errs []error
	for i, x := range b.Clusters {
		for _, y := range b.Clusters[:i] {
			if p, q, ok := firstOverlap(x.PodCIDRs, y.PodCIDRs); ok {
				errs = append(errs, fmt.Errorf("clusters %s and %s have overlapping pod ranges, %s and %s: one address could belong to two pods; one of the clusters needs another range",
					y.ID, x.ID, q, p))
			}
		}
	}
	return errors.Join(errs...)
}

func firstOverlap(a, b []netip.Prefix) (p, q netip.Prefix, ok bool) {
	for _, p := range a {
		for _, q := range b {
			if p.Overlaps(q) {
				return p, q, true
			}
		}
	}
	return p, q, false
}
