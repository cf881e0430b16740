package clustermesh_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
	"strait.io/strait/clustermesh"
)

func imports(names ...string) (out []clustermesh.Import) {
	for i, n := range names {
		out = append(out, clustermesh.Import{
			Service: clustermesh.ServiceName{Namespace: "default", Name: n},
			Type:    clustermesh.ClusterSetIP, Created: int64(i),
		})
	}
	return out
}

// Allocations are unique, inside the range, never its first or last address, and stay as they are
// whatever else comes and goes.
func TestAllocateProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.IntRange(25, 30).Draw(t, "bits") // small, so that names collide
		cidr := netip.PrefixFrom(netip.MustParseAddr("241.0.0.0"), bits)
		var have []clustermesh.Allocation
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			in := imports(rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,2}`), 0, 40, rapid.ID[string]).Draw(t, "names")...)
			got, problems := clustermesh.Allocate([]netip.Prefix{cidr}, have, in)
			if again, _ := clustermesh.Allocate([]netip.Prefix{cidr}, got, in); !slices.Equal(again, got) {
				t.Fatalf("not idempotent: %v then %v", got, again)
			}
			checkAllocations(t, cidr, have, got, in, problems)
			have = got
		}
	})
}

func checkAllocations(t *rapid.T, cidr netip.Prefix, have, got []clustermesh.Allocation, in []clustermesh.Import, problems []clustermesh.Problem) {
	before := map[clustermesh.ServiceName]netip.Addr{}
	for _, a := range have {
		before[a.Service] = a.IP
	}
	seen := map[netip.Addr]bool{}
	last := netip.Addr{}
	for a := cidr.Addr(); cidr.Contains(a); a = a.Next() {
		last = a
	}
	for _, a := range got {
		if seen[a.IP] || !cidr.Contains(a.IP) || a.IP == cidr.Addr() || a.IP == last {
			t.Fatalf("bad allocation %v in %v", a, got)
		}
		seen[a.IP] = true
		if old, ok := before[a.Service]; ok && old != a.IP {
			t.Fatalf("%s moved from %s to %s", a.Service, old, a.IP)
		}
	}
	missing, reported := len(in)-len(got), 0
	for _, p := range problems {
		if !p.Warning {
			reported++
		}
	}
	if missing != reported {
		t.Fatalf("%d imports without an address, %d problems", missing, reported)
	}
}

func TestAllocateSameEverywhere(t *testing.T) {
	cidr := netip.MustParsePrefix("241.0.0.0/24")
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("svc-%d", i))
	}
	one, problems := clustermesh.Allocate([]netip.Prefix{cidr}, nil, imports(names...))
	two, _ := clustermesh.Allocate([]netip.Prefix{cidr}, nil, imports(names...))
	if !slices.Equal(one, two) {
		t.Error("two clusters with one view allocate differently")
	}
	if len(problems) == 0 || !problems[0].Warning {
		t.Errorf("100 names in 254 addresses collide, but no warning was given: %v", problems)
	}
}

func TestAllocateIPv6AndHeadless(t *testing.T) {
	in := imports("a", "b")
	in[1].Type = clustermesh.Headless
	cidr := netip.MustParsePrefix("fd00:5354::/64")
	got, problems := clustermesh.Allocate([]netip.Prefix{cidr}, nil, in)
	if len(got) != 1 || !cidr.Contains(got[0].IP) || len(problems) != 0 {
		t.Errorf("got %v, problems %v", got, problems)
	}
}
