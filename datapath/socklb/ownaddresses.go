package socklb

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// SetOwn sets the addresses of which strait answers for every port. Without prune it only adds
// addresses, and changes the prefixes. Call it before Reconcile, so that a frontend which goes away
// refuses from the first moment. An address for which the map has no room is reported as a Problem:
// a connection to a port of it without a frontend is left to the network.
func (l *LB) SetOwn(want datapath.Own, prune bool) ([]problem.Problem, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table == nil {
		return nil, errClosed
	}
	problems, err := l.table.setOwn(want, prune)
	l.publishUsage()
	return problems, err
}

func (t *table) setOwn(want datapath.Own, prune bool) (problems []problem.Problem, err error) {
	if t.owned && t.own.Equal(want) {
		return nil, nil
	}
	t.owned = false
	if !slices.Equal(t.own.Prefixes, want.Prefixes) {
		if err := t.kernel.setPrefixes(want.Prefixes); err != nil {
			return nil, fmt.Errorf("set the ranges of own addresses: %w", err)
		}
		t.own.Prefixes = want.Prefixes
	}
	for _, a := range want.Addrs {
		if t.listed[a] {
			continue
		}
		t.kernel.mark(a)
		switch err := t.kernel.insertAddress(a); {
		case errors.Is(err, errFull):
			problems = append(problems, problem.Named("address", a.String()).Problem(problem.Problem{
				Code: problem.FrontendRefused, Warning: true,
				Message: fmt.Sprintf("%v: map addresses holds %d and takes no more; ports of this address without a frontend are not refused", errFull, len(t.listed)),
				Try:     "raise maxFrontends",
			}))
		case err != nil:
			return problems, err
		default:
			t.listed[a] = true
		}
	}
	if !prune {
		return problems, nil
	}
	removed := false
	for a := range t.listed {
		if _, wanted := slices.BinarySearchFunc(want.Addrs, a, netip.Addr.Compare); wanted {
			continue
		}
		if err := t.kernel.deleteAddress(a); err != nil {
			return problems, err
		}
		delete(t.listed, a)
		removed = true
	}
	if removed {
		t.kernel.keepMarks(t.addresses())
	}
	t.own.Addrs, t.owned = want.Addrs, len(problems) == 0
	return problems, nil
}

// addresses yields every address that must have its mark in the sieve, some more than once.
func (t *table) addresses() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for a := range t.installed {
			if !yield(a.IP) {
				return
			}
		}
		for a := range t.listed {
			if !yield(a) {
				return
			}
		}
	}
}
