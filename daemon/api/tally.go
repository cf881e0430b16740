package api

import (
	"maps"
	"net/netip"
	"strings"

	"strait.io/strait/internal/l4"
)

// frontendSeries names the series of one port of a service: its frontends of both IP families.
type frontendSeries struct {
	service string
	port    uint16
	proto   l4.Proto
}

// backendSeries names the series of a service's backends in one cluster. A series per backend would be one
// for every pod that ever was.
type backendSeries struct{ service, cluster string }

// counter names one counter of the kernel: a frontend's, or that of a backend of it.
type counter struct {
	frontend l4.Addr
	backend  netip.AddrPort
	refused  bool
}

// reading is what a counter showed, and in which round.
type reading struct{ value, round uint64 }

// total is what happened at the frontends of a series, or at its backends, and the round that counted last.
type total struct{ connects, refused, round uint64 }

// tally turns the kernel's counters, which begin and end with their frontends and backends, into totals
// that only grow: a sum that falls because a pod left would read as a restart, and its rate as a burst.
//
// What a backend gets between the last look at it and its end is missing from the total. A daemon that
// restarts begins with what the kernel counts then. The zero value is ready for use.
type tally struct {
	round     uint64
	seen      map[counter]reading // those that are not 0: most are
	services  map[string]uint64   // with a frontend, and the round that saw it
	frontends map[frontendSeries]total
	backends  map[backendSeries]total
}

// count adds what is new. Totals of frontends that have gone are dropped. Those of backends stay as long as their
// service and their cluster exist, with or without backends at the moment.
func (t *tally) count(clusters []Cluster, traffic func(each func(Traffic))) {
	if t.seen == nil {
		*t = tally{0, map[counter]reading{}, map[string]uint64{}, map[frontendSeries]total{}, map[backendSeries]total{}}
	}
	t.round++
	traffic(t.add)
	named := make(map[string]bool, len(clusters))
	for _, c := range clusters {
		named[label(c.Name)] = true
	}
	maps.DeleteFunc(t.seen, func(_ counter, r reading) bool { return r.round != t.round })
	maps.DeleteFunc(t.services, func(_ string, round uint64) bool { return round != t.round })
	maps.DeleteFunc(t.frontends, func(_ frontendSeries, n total) bool { return n.round != t.round })
	maps.DeleteFunc(t.backends, func(s backendSeries, n total) bool {
		return n.round != t.round && (t.services[s.service] != t.round || !named[s.cluster])
	})
}

func (t *tally) add(f Traffic) {
	series := frontendSeries{label(f.Service), f.Frontend.Port, f.Frontend.Proto}
	n := t.frontends[series]
	n.round = t.round
	n.connects += t.fresh(counter{frontend: f.Frontend}, f.Connects)
	n.refused += t.fresh(counter{frontend: f.Frontend, refused: true}, f.Refused)
	t.frontends[series] = n
	t.services[series.service] = t.round
	for _, b := range f.Backends {
		at := backendSeries{series.service, label(b.Cluster)}
		n := t.backends[at]
		n.round = t.round
		n.connects += t.fresh(counter{frontend: f.Frontend, backend: b.Addr}, b.Connects)
		t.backends[at] = n
	}
}

// fresh is how much of a counter's value no round has counted.
func (t *tally) fresh(c counter, value uint64) uint64 {
	if value == 0 {
		return 0
	}
	before := t.seen[c]
	if before.round == t.round {
		return 0 // two services of one frontend
	}
	t.seen[c] = reading{value, t.round}
	if value >= before.value {
		return value - before.value
	}
	return value // the kernel's counter started again
}

// label makes a label's value of a name, which may come from another cluster and must not be able to spoil
// the scrape: neither by a byte that is no text, nor as two names that would read the same.
func label(name string) string { return strings.ToValidUTF8(name, "�") }
