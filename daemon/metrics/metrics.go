// Package metrics is the daemon's Prometheus metrics.
//
// Inputs are the status, counts that the daemon keeps (Counts), and the applies that it reports;
// the output is the page of a scrape. It must not know how the status is computed, nor who serves
// the page. It is the one package that links Prometheus, so the CLI must not import it.
package metrics

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"strait.io/strait/daemon/api"
)

// Metrics are the daemon's Prometheus metrics, in a registry of their own. What the sources know is
// computed at each scrape; only events (applies) are counted as they happen.
//
// At 10,000 services of 10 endpoints a scrape is 30,000 series; BenchmarkProbes of package daemon
// measures the cost.
type Metrics struct {
	build    Build
	registry *prometheus.Registry
	sources  atomic.Pointer[sources]
	now      func() time.Time

	mu     sync.Mutex
	totals tally // of the kernel's counters, as seen by scrapes

	duration    *prometheus.HistogramVec
	errors      *prometheus.CounterVec
	lastSuccess *prometheus.GaugeVec
	propagation *prometheus.HistogramVec
	remotes     []string // the clusters of propagation; see Remotes
}

// Counts are what a scrape needs besides the status.
type Counts interface {
	// Members counts the nodes of the clusterset by what gossip knows about them: "alive" (this
	// node included, and those that relays report), "quiet", "silent", "held"; or "dead". States without
	// nodes may be missing.
	Members() map[string]int
	// Writes counts the writes to the API server that were tried since the daemon started.
	Writes() []api.Written
	// Gossiped counts the bytes that gossip sent and received since the daemon started.
	Gossiped() []api.Gossiped
	// Traffic calls each for every frontend of every service. The slice of backends is valid only
	// until each returns.
	Traffic(each func(api.Traffic))
}

// maxScrapes bounds concurrent scrapes. The first one at 10,000 services of 10 endpoints allocates
// 55 MB, most of which is garbage at once.
const maxScrapes = 3

// sources are what a scrape asks.
type sources struct {
	status interface{ Status() *api.Status }
	counts Counts
}

// Build says which program reports; an empty field is not known.
type Build struct{ Version, Revision string }

// New makes metrics without sources; From sets them.
func New(build Build) *Metrics {
	target := []string{"target"}
	m := &Metrics{
		build:    build.known(),
		registry: prometheus.NewRegistry(),
		now:      time.Now,
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "strait_reconcile_duration_seconds",
			Help: "Time to apply one plan to a target (route, wireguard, socklb, …), failures included.",
			// From one changed endpoint (1 ms) to 100,000 backends into empty maps (1 s), and
			// beyond. Each bucket is a series for each target, and most series of a small clusterset
			// were these.
			Buckets: []float64{.001, .005, .025, .1, .5, 2.5, 10},
		}, target),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "strait_reconcile_errors_total",
			Help: "Applies to a target that ended in an error; each is retried.",
		}, target),
		lastSuccess: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "strait_reconcile_last_success_timestamp_seconds",
			Help: "When a target last matched its plan, in Unix time.",
		}, target),
		propagation: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "strait_propagation_seconds",
			Help: "Time from when a cluster's leader published until it was in force on this node.",
			// From a data centre to a cluster that is far away and busy.
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 5, 30},
		}, []string{"remote_cluster"}),
	}
	m.registry.MustRegister(m.duration, m.errors, m.lastSuccess, m.propagation, gauges{m},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: maxScrapes,
	})
}

// Observe counts one apply to target: how long it took and how it ended.
func (m *Metrics) Observe(target string, d time.Duration, err error) {
	m.duration.WithLabelValues(target).Observe(d.Seconds())
	// Present at 0 from the first apply, so that rate() sees the first error.
	failed := m.errors.WithLabelValues(target)
	if err != nil {
		failed.Inc()
		return
	}
	m.lastSuccess.WithLabelValues(target).Set(float64(m.now().UnixNano()) / 1e9)
}

// Remotes sets which other clusters there are. A cluster's propagation is present at 0 from the
// first, so that rate() sees its first canary. It is for one caller.
func (m *Metrics) Remotes(clusters []string) {
	if slices.Equal(clusters, m.remotes) {
		return
	}
	for _, c := range m.remotes {
		if !slices.Contains(clusters, c) {
			m.propagation.DeleteLabelValues(c)
		}
	}
	for _, c := range clusters {
		m.propagation.WithLabelValues(c)
	}
	m.remotes = clusters
}

// Propagated counts how long it took until what another cluster published was in force here.
func (m *Metrics) Propagated(cluster string, took time.Duration) {
	m.propagation.WithLabelValues(cluster).Observe(took.Seconds())
}

// From sets the sources that each scrape asks. Before that, a scrape has build_info and ready only.
func (m *Metrics) From(status interface{ Status() *api.Status }, counts Counts) {
	m.sources.Store(&sources{status, counts})
}

// writes returns the counts of writes that the sources know; none before there are sources.
func (m *Metrics) writes() []api.Written {
	if src := m.sources.Load(); src != nil {
		return src.counts.Writes()
	}
	return nil
}

// gossiped returns the bytes that the sources count; none before there are sources.
func (m *Metrics) gossiped() []api.Gossiped {
	if src := m.sources.Load(); src != nil {
		return src.counts.Gossiped()
	}
	return nil
}

// look calls each with the present values of the sources and with the totals, or with nil before
// the first plan. Scrapes take turns: counts that arrived out of order would look like counters
// that restarted.
func (m *Metrics) look(each func(s *api.Status, members map[string]int, totals *tally)) {
	src := m.sources.Load()
	if src == nil {
		each(nil, nil, nil)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	status := src.status.Status()
	if status == nil {
		each(nil, nil, nil)
		return
	}
	m.totals.count(status.Clusters, src.counts.Traffic)
	each(status, src.counts.Members(), &m.totals)
}
