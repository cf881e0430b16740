package api

import (
	"net/netip"
	"strconv"
	"strings"

	"strait.io/strait/internal/l4"
)

// frontendSeries names the series of one port of a service: its frontends of both IP families.
type frontendSeries struct{ service, port, proto string }

// backendSeries names the series of a service's backends in one cluster. A series per backend would be one
// for every pod that ever was.
type backendSeries struct{ service, cluster string }

// traffic is what happened at the frontends of one series.
type traffic struct{ connects, refused uint64 }

// counter names one counter of the kernel: a frontend's, or that of a backend of it.
type counter struct {
	frontend l4.Addr
	backend  netip.AddrPort
	refused  bool
}

// tally turns the kernel's counters, which begin and end with their frontends and backends, into totals
// that only grow: a sum that falls because a pod left would read as a restart, and its rate as a burst.
//
// What a backend gets between the last look at it and its end is missing from the total. A daemon that
// restarts begins with what the kernel counts then.
type tally struct {
	seen      map[counter]uint64
	frontends map[frontendSeries]traffic
	backends  map[backendSeries]uint64
}

// with returns a tally that has counted what is new in the view. Totals of services that the view has not
// are dropped. The old tally is left as it was.
func (t tally) with(v *View) tally {
	next := tally{
		seen:      make(map[counter]uint64, len(t.seen)),
		frontends: make(map[frontendSeries]traffic, len(t.frontends)),
		backends:  t.backendsKept(v),
	}
	count := func(c counter, value uint64) uint64 {
		if value == 0 {
			return 0 // most are: not to be looked at, nor kept
		}
		if _, twice := next.seen[c]; twice {
			return 0
		}
		next.seen[c] = value
		if before := t.seen[c]; value >= before {
			return value - before
		}
		return value // the kernel's counter began anew
	}
	for _, s := range v.Services {
		for _, f := range s.Frontends {
			series := frontendSeries{label(s.Name), strconv.Itoa(int(f.Addr.Port)), f.Addr.Proto.String()}
			total, begun := next.frontends[series]
			if !begun {
				total = t.frontends[series]
			}
			total.connects += count(counter{frontend: f.Addr}, f.Connects)
			total.refused += count(counter{frontend: f.Addr, refused: true}, f.Refused)
			next.frontends[series] = total
			for _, e := range f.Endpoints {
				next.backends[backendSeries{series.service, label(e.Cluster)}] += count(
					counter{frontend: f.Addr, backend: e.Addr}, e.Connects)
			}
		}
	}
	return next
}

// backendsKept are the totals that go on: those whose service and cluster still exist, with or without
// backends at the moment.
func (t tally) backendsKept(v *View) map[backendSeries]uint64 {
	services, clusters := map[string]bool{}, map[string]bool{}
	for _, s := range v.Services {
		services[label(s.Name)] = true
	}
	for _, c := range v.Status.Clusters {
		clusters[label(c.Name)] = true
	}
	kept := make(map[backendSeries]uint64, len(t.backends))
	for series, total := range t.backends {
		if services[series.service] && clusters[series.cluster] {
			kept[series] = total
		}
	}
	return kept
}

// label makes a label's value of a name, which may come from another cluster and must not be able to spoil
// the scrape: neither by a byte that is no text, nor as two names that would read the same.
func label(name string) string { return strings.ToValidUTF8(name, "�") }
