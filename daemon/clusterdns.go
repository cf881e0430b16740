package daemon

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/clusterdns"
	"strait.io/strait/daemon/dns"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/coredns"
	"strait.io/strait/internal/notify"
)

const (
	// lookEvery is the pause between two looks at the cluster's DNS.
	lookEvery = 2 * time.Second
	// findEvery is how long what the API server said of that DNS is taken for true. While the zone is
	// not answered, changes of its pods are of interest, and it is findSoon.
	findEvery = time.Minute
	findSoon  = 5 * time.Second
)

// dnsWatch looks whether the cluster's own DNS answers for the zone, while this node leads its cluster.
// So one node asks, and CoreDNS gets one query every lookEvery.
type dnsWatch struct {
	config DNSConfig
	find   func(context.Context) (coredns.Server, error)
	look   func(context.Context, netip.AddrPort, string) clusterdns.Sight
	// changed is poked when problems returns something else.
	changed notify.Signal

	mu     sync.Mutex
	watch  clusterdns.Watch
	server coredns.Server
	use    clusterdns.Use

	// The loop of run owns these.
	asked time.Time // when find was called last
	lacks bool      // the last look found the zone not to be answered
}

func newDNSWatch(c DNSConfig, find func(context.Context) (coredns.Server, error), changed notify.Signal) *dnsWatch {
	return &dnsWatch{
		config: c, find: find, look: dns.Look, changed: changed,
		use: clusterdns.Use{Zone: dns.DefaultZone, Listens: len(c.Listen) > 0},
	}
}

// uses sets a service of another cluster whose name pods of this cluster can look up; empty if there
// is none.
func (w *dnsWatch) uses(s clustermesh.ServiceName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.use.Service = s
}

// run looks until ctx is done.
func (w *dnsWatch) run(ctx context.Context) error {
	if w.config.Probe.Off {
		return nil
	}
	defer w.forget()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		w.once(ctx, time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// once looks once. It asks nothing while there is no name to look up.
func (w *dnsWatch) once(ctx context.Context, now time.Time) {
	w.mu.Lock()
	server, idle := w.server, w.use.Service == (clustermesh.ServiceName{})
	w.mu.Unlock()
	if idle {
		return
	}
	every := findEvery
	if w.lacks || !server.Addr.IsValid() {
		every = findSoon
	}
	news := false
	if now.Sub(w.asked) >= every {
		w.asked = now
		if s, err := w.find(ctx); err == nil { // otherwise what was found before is all that is known
			if w.config.Probe.Addr.IsValid() {
				s.Addr = w.config.Probe.Addr
			}
			news = s.Old() != server.Old() || s.Marked != server.Marked
			server = s
		}
	}
	sight := clusterdns.Unknown
	if server.Addr.IsValid() {
		sight = w.look(ctx, server.Addr, dns.DefaultZone)
	}
	w.lacks = sight == clusterdns.Lacks
	w.mu.Lock()
	w.server = server
	news = w.watch.Note(sight) || news && w.watch.Lacks()
	w.mu.Unlock()
	if news {
		w.changed.Poke()
	}
}

// forget is for a node that does not lead any more: another one looks.
func (w *dnsWatch) forget() {
	w.mu.Lock()
	w.watch, w.server = clusterdns.Watch{}, coredns.Server{}
	w.mu.Unlock()
	w.asked, w.lacks = time.Time{}, false
	w.changed.Poke()
}

func (w *dnsWatch) problems() []clustermesh.Problem {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.watch.Problems(w.server, w.use)
}

// foreignName returns an import of another cluster that has a name in a cluster with these namespaces,
// which must be sorted; nil means all. It is empty if there is none.
func foreignName(r plan.Result, namespaces []string, own clustermesh.ClusterName) clustermesh.ServiceName {
	for _, i := range r.Imports {
		_, exists := slices.BinarySearch(namespaces, i.Service.Namespace)
		if (exists || namespaces == nil) && slices.ContainsFunc(i.Exporters, func(c clustermesh.ClusterName) bool { return c != own }) {
			return i.Service
		}
	}
	return clustermesh.ServiceName{}
}
