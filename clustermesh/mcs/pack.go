package mcs

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
)

// maxEndpoints is how many endpoints Kubernetes' own controller puts into one EndpointSlice.
const maxEndpoints = 100

// leaf is the part of a set of addresses that goes into one slice.
type leaf struct {
	// id is the lowest hash that the leaf may hold: unique among the leaves of a set.
	id    string
	addrs []netip.Addr // sorted
}

// pack spreads addresses over leaves of at most limit addresses, by hash. A leaf that is too full
// is split by the next bit of the hash; other leaves are not. So the result depends only on the
// set, not on its history. Adding or removing one address rewrites one slice, splits one in two, or
// merges two. The lower half keeps the id.
func pack(addrs []netip.Addr, limit int) []leaf {
	hashed := make([]hashedAddr, len(addrs))
	for i, a := range addrs {
		b := a.As16()
		sum := sha256.Sum256(b[:])
		hashed[i] = hashedAddr{binary.BigEndian.Uint64(sum[:]), a}
	}
	var out []leaf
	split(hashed, 0, 0, limit, &out)
	return out
}

type hashedAddr struct {
	hash uint64
	addr netip.Addr
}

// split makes leaves of the addresses, whose hashes have their first depth bits in common with low.
func split(in []hashedAddr, low uint64, depth, limit int, out *[]leaf) {
	if len(in) == 0 {
		return
	}
	if len(in) <= limit || depth == 64 {
		l := leaf{id: fmt.Sprintf("%x", low)}
		for _, h := range in {
			l.addrs = append(l.addrs, h.addr)
		}
		slices.SortFunc(l.addrs, netip.Addr.Compare)
		*out = append(*out, l)
		return
	}
	bit := uint64(1) << (63 - depth)
	var lower, upper []hashedAddr
	for _, h := range in {
		if h.hash&bit == 0 {
			lower = append(lower, h)
		} else {
			upper = append(upper, h)
		}
	}
	split(lower, low, depth+1, limit, out)
	split(upper, low|bit, depth+1, limit, out)
}
