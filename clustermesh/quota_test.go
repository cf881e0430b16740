package clustermesh_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
)

func named(i int) clustermesh.ServiceName {
	return clustermesh.ServiceName{Namespace: "shop", Name: fmt.Sprintf("s%05d", i)}
}

// offering is what cluster own knows of a cluster that exports Services numbered from..to, created in
// that order, of which those in force have addresses.
func offering(quota int, kind clustermesh.ServiceType, numbers []int, inForce ...int) clustermesh.State {
	s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}, Quotas: map[clustermesh.ClusterName]int{"far": quota}}
	var far, own clustermesh.Content
	for _, n := range numbers {
		far.Exports = append(far.Exports, clustermesh.Export{Service: named(n), Type: kind, Created: int64(1_000_000 - n)})
	}
	for i, n := range inForce {
		own.Allocations = append(own.Allocations, clustermesh.Allocation{Service: named(n), IP: netip.AddrFrom4([4]byte{241, 0, byte(i >> 8), byte(i)})})
	}
	for c, content := range map[clustermesh.ClusterName]clustermesh.Content{"far": far, "own": own} {
		s.Records = s.Records.With(clustermesh.Origin{Cluster: c}, clustermesh.Record{Origin: clustermesh.Origin{Cluster: c}, Content: content})
	}
	return s
}

func upTo(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// TestQuota: as many exports of another cluster become imports as its quota says, the oldest; those
// that are in force stay.
func TestQuota(t *testing.T) {
	for what, c := range map[string]struct {
		s        clustermesh.State
		want     int
		has      int // a Service that is imported
		lacks    int // one that is not; -1 for none
		problems int
	}{
		"below it":              {offering(500, clustermesh.ClusterSetIP, upTo(500)), 500, 0, -1, 0},
		"above it, the oldest":  {offering(500, clustermesh.ClusterSetIP, upTo(20_000)), 500, 19_999, 0, 1},
		"headless":              {offering(500, clustermesh.Headless, upTo(20_000)), 500, 19_999, 0, 1},
		"in force before":       {offering(500, clustermesh.ClusterSetIP, upTo(20_000), upTo(3_000)...), 3_000, 0, 3_000, 1},
		"some in force":         {offering(500, clustermesh.ClusterSetIP, upTo(20_000), 7, 8), 500, 7, 9, 1},
		"nothing says how many": {func() clustermesh.State { s := offering(0, "", upTo(900)); s.Quotas = nil; return s }(), 900, 0, -1, 0},
		"what the cluster's own has": {func() clustermesh.State {
			s := offering(5, "", nil)
			s.Quotas = map[clustermesh.ClusterName]int{"own": 5}
			r := s.Records.Get(clustermesh.Origin{Cluster: "own"})
			r.Content.Exports = offering(5, "", upTo(900)).Records.Get(clustermesh.Origin{Cluster: "far"}).Content.Exports
			s.Records = s.Records.With(clustermesh.Origin{Cluster: "own"}, r)
			return s
		}(), 900, 0, -1, 0},
	} {
		got := c.s.Exports("own")
		_, has := got[named(c.has)]
		_, lacks := got[named(c.lacks)]
		problems := c.s.OverQuota("own")
		if len(got) != c.want || !has || c.lacks >= 0 && lacks || len(problems) != c.problems {
			t.Errorf("%s: %d imports, %v %v, problems %v", what, len(got), has, lacks, problems)
		}
		if len(problems) > 0 && !strings.Contains(problems[0].String(), "cluster far: quota.exports: it exports 20000 Services, and its quota is 500") {
			t.Errorf("%s: %s", what, problems[0])
		}
	}
}

// TestQuotaIsStable: whatever a cluster exports more, of whatever age and name, takes nothing away that
// was imported and has got its address; and never are there more than its quota says.
func TestQuotaIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const quota = 5
		numbers := rapid.SliceOfNDistinct(rapid.IntRange(0, 40), 0, 20, rapid.ID[int]).Draw(t, "exports")
		slices.Sort(numbers)
		before := offering(quota, clustermesh.ClusterSetIP, numbers).Exports("own")
		var inForce []int
		for _, n := range numbers {
			if _, imported := before[named(n)]; imported {
				inForce = append(inForce, n)
			}
		}
		more := slices.Concat(numbers, rapid.SliceOfNDistinct(rapid.IntRange(41, 90), 0, 20, rapid.ID[int]).Draw(t, "more"))
		if rapid.Bool().Draw(t, "older") {
			for i := range more {
				more[i] = -more[i] // so that the new ones are the younger, too
			}
			for i := range inForce {
				inForce[i] = -inForce[i]
			}
		}
		after := offering(quota, clustermesh.ClusterSetIP, more, inForce...).Exports("own")
		for _, n := range inForce {
			if _, still := after[named(n)]; !still {
				t.Fatalf("%d was imported, and is not", n)
			}
		}
		if len(after) > quota {
			t.Fatalf("%d imports", len(after))
		}
	})
}
