package datapath

import "strait.io/strait/internal/l4"

// Grow returns the frontends of want so that none of them loses a backend: one that is also in have
// keeps the backends that it has, besides those that are wanted. It is for the time before every
// source has spoken, when what is absent from want can simply be unknown.
func Grow(have, want []Frontend) []Frontend {
	installed := make(map[l4.Addr][]Backend, len(have))
	for _, f := range have {
		installed[f.Addr] = f.Backends
	}
	out := make([]Frontend, len(want))
	for i, f := range want {
		known := map[Backend]bool{}
		bs := append([]Backend(nil), f.Backends...)
		for _, b := range f.Backends {
			b.Weight = 0
			known[b] = true
		}
		for _, b := range installed[f.Addr] {
			if !known[Backend{IP: b.IP, Port: b.Port}] {
				bs = append(bs, b)
			}
		}
		f.Backends = SortBackends(bs)
		out[i] = f
	}
	return out
}
