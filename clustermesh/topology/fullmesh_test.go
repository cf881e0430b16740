package topology

import (
	"fmt"
	"testing"

	"strait.io/strait/clustermesh"
)

func TestFanOut(t *testing.T) {
	for n, want := range map[int]int{0: 3, 5: 3, 9: 3, 31: 5, 99: 6, 249: 7, 999: 9} {
		if got := fanOut(n); got != want {
			t.Errorf("fanOut(%d) = %d, want %d", n, got, want)
		}
	}
}

// origins returns n nodes of one cluster.
func origins(n int) (out []clustermesh.Origin) {
	for i := range n {
		out = append(out, clustermesh.Origin{Cluster: "c", Node: clustermesh.NodeName(fmt.Sprint("n", i))})
	}
	return out
}

// TestSpread: a writer tells all neighbours; others pass news on to a few that lack them.
func TestSpread(t *testing.T) {
	all := origins(10)
	self, neighbours := all[0], all[1:]
	for name, c := range map[string]struct {
		news            News
		neighbours      []clustermesh.Origin
		records, offers string
	}{
		"written here":             {News{Writer: self}, neighbours, "[c/n1 c/n2 c/n3]", "[c/n4 c/n5 c/n6 c/n7 c/n8 c/n9]"},
		"written here, for few":    {News{Writer: self}, neighbours[:2], "[c/n1 c/n2]", "[]"},
		"of the writer":            {News{From: all[1], Writer: all[1]}, neighbours, "[c/n2 c/n3 c/n4]", "[]"},
		"of another than it wrote": {News{From: all[9], Writer: all[2]}, neighbours, "[c/n1 c/n3 c/n4]", "[]"},
		"repaired":                 {News{From: all[1], Writer: all[5], Repaired: true}, neighbours, "[]", "[c/n2 c/n3 c/n4]"},
		"alone":                    {News{Writer: self}, nil, "[]", "[]"},
	} {
		to := Flood{}.Spread(c.news, c.neighbours)
		if got := fmt.Sprint(to.Records); got != c.records {
			t.Errorf("%s: records to %s, want %s", name, got, c.records)
		}
		if got := fmt.Sprint(to.Offers); got != c.offers {
			t.Errorf("%s: offers to %s, want %s", name, got, c.offers)
		}
	}
}

// TestFullMeshRoles: each node is reached directly, and is a relay of records, not of packets.
func TestFullMeshRoles(t *testing.T) {
	all := origins(5)
	for _, o := range all {
		if hop := (FullMesh{}).NextHop(all[0], all[1:])(o); hop != o {
			t.Errorf("packets for %s go to %s", o, hop)
		}
		if r := (FullMesh{}).Roles(o, all); !r.Relay || r.Gateway {
			t.Errorf("%s has the roles %+v", o, r)
		}
	}
}
