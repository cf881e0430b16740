package clustermesh

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"strait.io/strait/internal/problem"
)

// eligible returns, for each range, the imports that should have an address from it. An import
// whose families are declared has addresses of these families. Otherwise it has one from every
// range, because the families of endpoints change as pods come and go.
//
// If the declared families change, an import keeps the address of a family that it lost until it
// has one of each other family: a client that asks in between gets an address that is in force.
func eligible(cidrs []netip.Prefix, have []Allocation, imports []Import) (map[netip.Prefix]map[ServiceName]bool, []Problem) {
	out := make(map[netip.Prefix]map[ServiceName]bool, len(cidrs))
	has := make(map[netip.Prefix]map[ServiceName]bool, len(cidrs))
	for _, cidr := range cidrs {
		out[cidr], has[cidr] = make(map[ServiceName]bool, len(imports)), map[ServiceName]bool{}
		for _, a := range have {
			if cidr.Contains(a.IP) {
				has[cidr][a.Service] = true
			}
		}
	}
	var problems []Problem
	for _, i := range imports {
		if i.Type != ClusterSetIP {
			continue
		}
		var in, gone []netip.Prefix
		for _, cidr := range cidrs {
			if i.FamiliesDeclared && !slices.Contains(i.Families, FamilyOf(cidr.Addr())) {
				gone = append(gone, cidr)
				continue
			}
			in = append(in, cidr)
			out[cidr][i.Service] = true
		}
		if len(in) == 0 {
			problems = append(problems, i.rangeless())
		}
		if slices.ContainsFunc(in, func(c netip.Prefix) bool { return !has[c][i.Service] }) {
			for _, cidr := range gone {
				out[cidr][i.Service] = has[cidr][i.Service]
			}
		}
	}
	return out, problems
}

func (i Import) rangeless() Problem {
	names := make([]string, len(i.Families))
	for n, f := range i.Families {
		names[n] = string(f)
	}
	return i.Service.Ref("ServiceImport").Problem(Problem{
		Code:    problem.FamilyWithoutRange,
		Field:   "ipFamilies",
		Message: fmt.Sprintf("%s: clustersetCIDRs has no range of that family, so there is no ClusterSetIP here", strings.Join(names, ", ")),
		Try:     fmt.Sprintf("add a range to clustersetCIDRs in every cluster, or change spec.ipFamilies of the Service in cluster %s", i.Exporters[0]),
		Warning: true,
	})
}
