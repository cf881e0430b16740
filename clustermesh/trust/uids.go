package trust

import (
	"fmt"
	"maps"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/problem"
)

// mixedUIDs returns a Problem for each pinned cluster whose records, all sealed by its pinned roots, name
// several UIDs, or another one than its pin. Then two clusters have the same id and the same root, or the
// cluster was built again. Both are believed, because the root is what was pinned; a node can lie about its
// UID, and so must not decide which of the two is the right one.
func mixedUIDs(pins authority.Pins, records clustermesh.ByOrigin[clustermesh.Record]) (out []clustermesh.Problem) {
	uidsOf := map[clustermesh.ClusterName]map[string]clustermesh.Origin{} // by UID, the first that has it
	for o, r := range records.All() {
		if _, pinned := pins[o.Cluster]; !pinned || r.UID == "" {
			continue
		}
		uids := uidsOf[o.Cluster]
		if uids == nil {
			uids = map[string]clustermesh.Origin{}
			uidsOf[o.Cluster] = uids
		}
		if first, known := uids[r.UID]; !known || o.Compare(first) < 0 {
			uids[r.UID] = o
		}
	}
	for _, c := range slices.Sorted(maps.Keys(uidsOf)) {
		uids, pin := uidsOf[c], pins[c].UID
		have := ""
		if _, both := uids[pin]; pin != "" && !both {
			have = fmt.Sprintf("UID %s, which is pinned", pin)
		}
		for _, uid := range slices.Sorted(maps.Keys(uids)) {
			is := fmt.Sprintf("UID %s (the record of %s)", uid, uids[uid])
			switch {
			case have == "":
				have = is
				continue
			case uid == pin:
				have, is = is, have
			}
			out = append(out, mixedProblem(c, have, is))
			break
		}
	}
	return out
}

func mixedProblem(c clustermesh.ClusterName, one, other string) clustermesh.Problem {
	return problem.Cluster(string(c)).Problem(clustermesh.Problem{
		Code: problem.ClusterIdentityRepeated, Warning: true,
		Message: fmt.Sprintf("two clusters have this id and its pinned root: one with %s, and one with %s; both are believed", one, other),
		Try:     "if the cluster was built anew, pin it again (strait clusterset accept); otherwise its root was copied: give one of the two another id and a root of its own",
	})
}
