package clustermesh_test

import (
	"net/netip"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
)

// Which families an import has addresses of, after one step and once nothing changes any more.
func TestAllocateFamilies(t *testing.T) {
	const four, six = clustermesh.IPv4, clustermesh.IPv6
	v4, v6 := netip.MustParsePrefix("241.0.0.0/8"), netip.MustParsePrefix("fd00:5354::/64")
	both := []netip.Prefix{v4, v6}
	type families = []clustermesh.Family
	for _, c := range []struct {
		what       string
		cidrs      []netip.Prefix
		was        families // declared by the import when it got its first addresses; nil: it had none
		is         families // declared now; nil: not declared
		next, last string
	}{
		{"one", both, nil, families{four}, "IPv4", "IPv4"},
		{"the other", both, nil, families{six}, "IPv6", "IPv6"},
		{"both", both, nil, families{six, four}, "IPv4 IPv6", "IPv4 IPv6"},
		{"not declared", both, nil, nil, "IPv4 IPv6", "IPv4 IPv6"},
		{"not declared any more", both, families{six}, nil, "IPv4 IPv6", "IPv4 IPv6"},
		{"one more", both, families{four}, families{four, six}, "IPv4 IPv6", "IPv4 IPv6"},
		{"one less", both, families{four, six}, families{six}, "IPv6", "IPv6"},
		{"another: both until it has the new one", both, families{four}, families{six}, "IPv4 IPv6", "IPv6"},
		{"no range of it", []netip.Prefix{v4}, nil, families{six}, "", ""},
		{"no range of it any more", []netip.Prefix{v4}, families{four}, families{six}, "", ""},
		{"a range of one of them", []netip.Prefix{v6}, nil, families{four, six}, "IPv6", "IPv6"},
	} {
		in := imports("serve")
		in[0].Exporters = []clustermesh.ClusterName{"east"}
		declare := func(fs families) []clustermesh.Import {
			in[0].Families, in[0].FamiliesDeclared = fs, fs != nil
			if fs == nil {
				in[0].Families = families{four} // what a merge says without knowing
			}
			return in
		}
		var have []clustermesh.Allocation
		if c.was != nil {
			have, _ = clustermesh.Allocate(c.cidrs, nil, declare(c.was))
		}
		next, problems := clustermesh.Allocate(c.cidrs, have, declare(c.is))
		last, _ := clustermesh.Allocate(c.cidrs, next, declare(c.is))
		if got := familiesOf(next); got != c.next {
			t.Errorf("%s: next %q, want %q", c.what, got, c.next)
		}
		if got := familiesOf(last); got != c.last {
			t.Errorf("%s: in the end %q, want %q", c.what, got, c.last)
		}
		if none := c.last == ""; none != (len(problems) == 1) {
			t.Errorf("%s: problems %v", c.what, problems)
		}
		for _, a := range next {
			if was := addressOf(have, clustermesh.FamilyOf(a.IP)); was.IsValid() && was != a.IP {
				t.Errorf("%s: %s moved to %s", c.what, was, a.IP)
			}
		}
	}
}

func familiesOf(as []clustermesh.Allocation) string {
	out := make([]string, len(as))
	for i, a := range as {
		out[i] = string(clustermesh.FamilyOf(a.IP))
	}
	return strings.Join(out, " ")
}

func addressOf(as []clustermesh.Allocation, f clustermesh.Family) netip.Addr {
	for _, a := range as {
		if clustermesh.FamilyOf(a.IP) == f {
			return a.IP
		}
	}
	return netip.Addr{}
}
