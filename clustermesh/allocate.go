package clustermesh

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/internal/problem"
)

// maxProbes bounds the walk from a taken address to a free one.
const maxProbes = 1024

// Allocate gives each ClusterSetIP import an address from each range of its families; see eligible.
// Imports must be sorted oldest first, because they choose in that order. An import keeps the
// address that it already has in have. Otherwise it gets the address to which the service's name
// hashes or, if that is taken, the next free one. So clusters that see the same imports in the same
// order choose the same addresses without talking.
//
// Collisions are warnings. An import for which no address is free gets a Problem and no address.
func Allocate(cidrs []netip.Prefix, have []Allocation, imports []Import) (out []Allocation, problems []Problem) {
	want, problems := eligible(cidrs, have, imports)
	for _, cidr := range cidrs {
		a, p := allocate(cidr, have, imports, want[cidr])
		out, problems = append(out, a...), append(problems, p...)
	}
	return out, problems
}

// allocate gives an address from cidr to each import that is in want.
func allocate(cidr netip.Prefix, have []Allocation, imports []Import, want map[ServiceName]bool) ([]Allocation, []Problem) {
	owner := map[netip.Addr]ServiceName{}
	kept := map[ServiceName]netip.Addr{}
	for _, a := range have {
		if _, taken := owner[a.IP]; !taken && want[a.Service] && cidr.Contains(a.IP) && !kept[a.Service].IsValid() {
			owner[a.IP], kept[a.Service] = a.Service, a.IP
		}
	}
	var out []Allocation
	var problems []Problem
	for _, i := range imports {
		if !want[i.Service] {
			continue
		}
		first := hashAddr(cidr, i.Service.String())
		ip := kept[i.Service]
		if !ip.IsValid() {
			ip = probe(cidr, first, owner)
		}
		if !ip.IsValid() {
			problems = append(problems, i.Service.Ref("ServiceImport").Problem(Problem{
				Code:    problem.NoAddressFree,
				Message: fmt.Sprintf("no ClusterSetIP is free near %s in %s: not programmed", first, cidr),
				Try:     "configure a larger clustersetCIDR in every cluster",
			}))
			continue
		}
		owner[ip] = i.Service
		out = append(out, Allocation{i.Service, ip})
		if other, taken := owner[first]; taken && ip != first {
			problems = append(problems, collision(i.Service, other, first, ip))
		}
	}
	slices.SortFunc(out, func(a, b Allocation) int { return a.Service.Compare(b.Service) })
	return out, problems
}

func collision(service, other ServiceName, first, ip netip.Addr) Problem {
	return service.Ref("ServiceImport").Problem(Problem{
		Code:    problem.AddressCollision,
		Message: fmt.Sprintf("hashes to the same ClusterSetIP as %s (%s); uses %s instead", other, first, ip),
		Try:     "nothing if every cluster shows this address; otherwise rename one of the two services",
		Warning: true,
	})
}

// probe returns the first free address at or after first, wrapping around at the end of cidr. The
// address is invalid if none is free nearby.
func probe(cidr netip.Prefix, first netip.Addr, owner map[netip.Addr]ServiceName) netip.Addr {
	ip := first
	for range maxProbes {
		if _, taken := owner[ip]; !taken {
			return ip
		}
		if ip = ip.Next(); !cidr.Contains(ip) || !cidr.Contains(ip.Next()) {
			ip = cidr.Masked().Addr().Next()
		}
	}
	return netip.Addr{}
}

// hashAddr maps a name to an address of cidr, never its first or last (network and broadcast).
func hashAddr(cidr netip.Prefix, name string) netip.Addr {
	sum := sha256.Sum256([]byte(name))
	host := min(cidr.Addr().BitLen()-cidr.Bits(), 63)
	offset := uint64(1)
	if size := uint64(1) << host; size > 2 {
		offset += binary.BigEndian.Uint64(sum[:8]) % (size - 2)
	}
	b := cidr.Masked().Addr().As16()
	low := binary.BigEndian.Uint64(b[8:]) + offset
	binary.BigEndian.PutUint64(b[8:], low)
	ip := netip.AddrFrom16(b)
	if cidr.Addr().Is4() {
		return ip.Unmap()
	}
	return ip
}
