package trust

import (
	"fmt"
	"maps"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// mixedUID returns a Problem of a pinned cluster whose records, all sealed by its pinned roots,
// name several UIDs, or another one than its pin. Then two clusters have the same id and the same
// root, or the cluster was built again. Both are believed, because the root is what was pinned; a
// node can lie about its UID, and so must not decide which of the two is the right one.
func mixedUID(c clustermesh.ClusterName, pin string, records clustermesh.ByOrigin[clustermesh.Record]) (p clustermesh.Problem, mixed bool) {
	uids := map[string]clustermesh.Origin{} // by UID, the first that has it
	for o, r := range records.Of(c) {
		if first, known := uids[r.UID]; r.UID != "" && (!known || o.Compare(first) < 0) {
			uids[r.UID] = o
		}
	}
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
		return mixedProblem(c, have, is), true
	}
	return clustermesh.Problem{}, false
}

func mixedProblem(c clustermesh.ClusterName, one, other string) clustermesh.Problem {
	return problem.Cluster(string(c)).Problem(clustermesh.Problem{
		Code: problem.ClusterIdentityRepeated, Warning: true,
		Message: fmt.Sprintf("two clusters have this id and its pinned root: one with %s, and one with %s; both are believed", one, other),
		Try:     "if the cluster was rebuilt, pin it again (strait clusterset accept); otherwise its root was copied: give one of the two another id and a root of its own",
	})
}
