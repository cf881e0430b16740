package trust

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
)

// TestVerified: whatever is verified and forgotten, the late statements and the shared keys are
// those that one gets by looking at everything.
func TestVerified(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, began := newVerified("west"), time.Unix(1e9, 0)
		origin := rapid.Custom(func(t *rapid.T) clustermesh.Origin {
			return node(rapid.SampledFrom([]string{"west", "east"}).Draw(t, "cluster"), rapid.SampledFrom([]string{"", "n1", "n2", "n3"}).Draw(t, "node"))
		})
		now := began
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				o := origin.Draw(t, "of")
				s := authority.Statement{Cluster: o.Cluster, Node: o.Node, Key: authority.PublicKey{byte(rapid.IntRange(1, 3).Draw(t, "key"))}}
				s.NotBefore = now.Unix() + int64(rapid.IntRange(-100, 10).Draw(t, "from"))
				s.NotAfter = s.NotBefore + int64(rapid.IntRange(1, 100).Draw(t, "for"))
				x := verification{Signed: Signed{Statement: s}}
				if rapid.Bool().Draw(t, "has bytes") {
					x.Bytes = []byte("signed")
				}
				v.set(o, x)
			},
			"delete": func(t *rapid.T) { v.delete(origin.Draw(t, "of")) },
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(-50, 100).Draw(t, "seconds")) * time.Second)
			},
			"": func(t *rapid.T) {
				late, keys := []clustermesh.Origin{}, map[authority.PublicKey][]clustermesh.Origin{}
				ours := 0
				for o, x := range v.of {
					if o.Cluster == "west" {
						ours++
					}
					if v.ours[o] != (o.Cluster == "west") {
						t.Fatalf("%s is this cluster's: %v", o, v.ours[o])
					}
					if o.Node != "" && x.Age(now) >= authority.Late {
						late = append(late, o)
					}
					if o.Node != "" && x.Bytes != nil {
						keys[x.Key] = append(keys[x.Key], o)
					}
				}
				if len(v.ours) != ours {
					t.Fatalf("%d are this cluster's, want %d", len(v.ours), ours)
				}
				slices.SortFunc(late, clustermesh.Origin.Compare)
				if got := v.lateBy(now); !slices.Equal(got, late) {
					t.Fatalf("late: %v, want %v", got, late)
				}
				shared := map[authority.PublicKey]bool{{9}: true}
				for k, all := range keys {
					slices.SortFunc(all, clustermesh.Origin.Compare)
					if got := v.holders(k); !slices.Equal(got, all) {
						t.Fatalf("key %d is that of %v, want %v", k[0], got, all)
					}
					if len(all) > 1 {
						shared[k] = true
					}
				}
				got := map[authority.PublicKey]bool{}
				for _, k := range v.sharedKeys(authority.PublicKey{9}) {
					got[k] = true
				}
				if !maps.Equal(got, shared) || len(v.byKey) != len(keys) {
					t.Fatalf("shared keys %v of %d, want %v of %d", got, len(v.byKey), shared, len(keys))
				}
			},
		})
	})
}

// TestMixedUIDsOfChanges: whatever changes of records and pins, the Problems are those of all
// clusters as they are.
func TestMixedUIDsOfChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var u uids
		pins, generation, records := authority.Pins{"west": {}}, uint64(0), clustermesh.ByOrigin[clustermesh.Record]{}
		for range rapid.IntRange(1, 50).Draw(t, "changes") {
			c := rapid.SampledFrom([]clustermesh.ClusterName{"west", "east"}).Draw(t, "cluster")
			o := clustermesh.Origin{Cluster: c, Node: rapid.SampledFrom([]clustermesh.NodeName{"", "n1", "n2"}).Draw(t, "node")}
			switch rapid.IntRange(0, 5).Draw(t, "change") {
			case 0:
				pins = maps.Clone(pins)
				pins[c] = authority.Pin{UID: rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "pinned")}
				generation++
			case 1:
				pins = maps.Clone(pins)
				delete(pins, c)
				generation++
			case 2:
				records = records.Without(o)
			default:
				records = records.With(o, clustermesh.Record{Origin: o, UID: rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "uid")})
			}
			want := []clustermesh.Problem{}
			for _, c := range slices.Sorted(maps.Keys(pins)) {
				if p, mixed := mixedUID(c, pins[c].UID, records); mixed {
					want = append(want, p)
				}
			}
			if got := u.update(pins, generation, records); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%v, want %v", got, want)
			}
		}
	})
}

// TestIsVerified: only the entry that was verified counts as that, held or not: not one with other
// bytes, nor with a seal that has come again.
func TestIsVerified(t *testing.T) {
	o, seal := node("east", "n1"), []byte("sealed")
	entry := func(version uint64) replica.Entry {
		e, err := replica.NewEntry(clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: version}})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := entry(1).Sealed(seal)
	v := verification{version: e.Version(), seal: e.Seal()}
	for what, c := range map[string]struct {
		e    replica.Entry
		want bool
	}{
		"as it came":    {e, true},
		"held":          {e.Held(), true},
		"sealed again":  {e.Sealed(slices.Clone(seal)), false},
		"a part of it":  {e.Sealed(seal[:3]), false},
		"without seal":  {entry(1), false},
		"another entry": {entry(2).Sealed(seal), false},
	} {
		if got := v.is(c.e); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}
