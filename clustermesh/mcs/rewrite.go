package mcs

import (
	"slices"

	"strait.io/strait/clustermesh/written"
)

// Rewrites reports whether operations change slices that kube-proxy reads, or delete some of them. It
// does not count what ends all that exist: then the Service would be empty, or answer from clusters that
// are not in use any more, so that cannot wait.
func (h Have) Rewrites(ops []written.Op) bool {
	all, deleted := 0, 0
	for _, s := range h.Slices {
		if s.proxied() {
			all++
		}
	}
	n := 0
	for _, o := range ops {
		if h.rewrites(o) {
			n++
			if o.Verb == written.Delete {
				deleted++
			}
		}
	}
	return n > 0 && deleted < all
}

// WithoutRewrites returns the operations that Rewrites does not count. New slices are among them: what is
// new is there before anything that is old goes.
func (h Have) WithoutRewrites(ops []written.Op) []written.Op {
	return slices.DeleteFunc(slices.Clone(ops), h.rewrites)
}

func (h Have) rewrites(o written.Op) bool {
	return o.Slice() != nil && o.Verb != written.Create && slices.ContainsFunc(h.Slices, func(s Slice) bool {
		return s.proxied() && s.Name == o.Slice().Name
	})
}

// proxied reports whether kube-proxy reads the slice.
func (s Slice) proxied() bool { return s.Derived != "" || s.Global }
