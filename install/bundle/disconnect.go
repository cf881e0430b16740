package bundle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Disconnect returns the bundle of each view's cluster without the member id, which is gone; nil
// for a cluster that holds no bundle. The views must include every remaining cluster, because one
// that still knows the member would bring it back at the next connect.
func Disconnect(views []View, id string) ([]*Bundle, error) {
	out := make([]*Bundle, len(views))
	known, named := map[string]bool{}, map[string]bool{}
	for i, v := range views {
		named[v.Cluster.ID] = true
		if v.Cluster.ID == id {
			return nil, fmt.Errorf("context %s is cluster %s itself; remove strait from it: strait uninstall --context %s", v.Context, id, v.Context)
		}
		if v.Have == nil {
			continue
		}
		rest := v.Have.Without(id)
		out[i] = &rest
		for _, c := range v.Have.Clusters {
			known[c.ID] = true
		}
	}
	if !known[id] {
		return nil, fmt.Errorf("no context's cluster is joined to a cluster %s; joined clusters are: %s", id, strings.Join(sortedKeys(known), ", "))
	}
	left := slices.DeleteFunc(sortedKeys(known), func(other string) bool { return other == id || named[other] })
	if len(left) > 0 {
		return nil, errors.New("other clusters are joined to it too, and would bring it back; name their contexts as well: " + strings.Join(left, ", "))
	}
	return out, nil
}

func sortedKeys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
