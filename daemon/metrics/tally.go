package metrics

import (
	"maps"
	"net/netip"
	"strings"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/l4"
)

// frontendSeries identifies the series of one port of a service: its frontends of both IP families.
type frontendSeries struct {
	service string
	port    uint16
	proto   l4.Proto
}

// backendSeries identifies the series of a service's backends in one cluster. A series per backend
// would mean one for every pod that ever existed.
type backendSeries struct{ service, cluster string }

// counter identifies one counter of the kernel: that of a frontend, or of one of its backends.
type counter struct {
	frontend l4.Addr
	backend  netip.AddrPort
	refused  bool
}

// reading is the value that a counter showed, and in which round.
type reading struct{ value, round uint64 }

// total counts what happened at the frontends of a series, or at its backends. Round is the one
// that counted last.
type total struct{ connects, refused, round uint64 }

// tally turns the kernel's counters, which come and go with their frontends and backends, into
// totals that only grow. A sum that falls because a pod left would look like a restart, and its
// rate like a burst.
//
// Connections that a backend gets between the last round and its removal are missing from the
// total. A daemon that restarts begins with the kernel's counts at that time. The zero value is
// ready for use.
type tally struct {
	round     uint64
	seen      map[counter]reading // only those that are not 0: most are 0
	services  map[string]uint64   // those with a frontend, and the round that saw it
	frontends map[frontendSeries]total
	backends  map[backendSeries]total
}

// count adds what is new. Totals of frontends that are gone are dropped. Totals of backends stay
// while their service and their cluster exist, even if there are no backends at the moment.
func (t *tally) count(clusters []api.Cluster, traffic func(each func(api.Traffic))) {
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

func (t *tally) add(f api.Traffic) {
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

// fresh returns the part of a counter's value that no round has counted yet.
func (t *tally) fresh(c counter, value uint64) uint64 {
	if value == 0 {
		return 0
	}
	before := t.seen[c]
	if before.round == t.round {
		return 0 // already counted: two services share the frontend
	}
	t.seen[c] = reading{value, t.round}
	if value >= before.value {
		return value - before.value
	}
	return value // the kernel's counter restarted
}

// label turns a name into the value of a label. A name from another cluster must not break the
// scrape: bytes that are not UTF-8 are replaced, and series are keyed by the result, so that names
// which then read the same share a series.
func label(name string) string { return strings.ToValidUTF8(name, "�") }
