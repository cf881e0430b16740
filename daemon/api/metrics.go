package api

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics are the daemon's Prometheus metrics, in a registry of their own. What the sources know is
// computed at each scrape; only events (applies) are counted as they happen.
//
// At 10,000 services of 10 endpoints a scrape is 30,000 series; BenchmarkProbes of package daemon
// measures the cost.
type Metrics struct {
	registry *prometheus.Registry
	sources  atomic.Pointer[sources]
	now      func() time.Time

	mu     sync.Mutex
	totals tally // of the kernel's counters, as seen by scrapes

	duration    *prometheus.HistogramVec
	errors      *prometheus.CounterVec
	lastSuccess *prometheus.GaugeVec
}

// sources are what a scrape asks.
type sources struct {
	status interface{ Status() *Status }
	counts Counts
}

// NewMetrics makes metrics without sources; New sets them.
func NewMetrics() *Metrics {
	target := []string{"target"}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		now:      time.Now,
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "strait_reconcile_duration_seconds",
			Help: "Time to apply one plan to a target (route, wireguard, socklb, …), failures included.",
			// From one changed endpoint (1 ms) to 100,000 backends into empty maps (1 s), and
			// beyond.
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, target),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "strait_reconcile_errors_total",
			Help: "Applies to a target that ended in an error; each is retried.",
		}, target),
		lastSuccess: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "strait_reconcile_last_success_timestamp_seconds",
			Help: "When a target last matched its plan, in Unix time.",
		}, target),
	}
	m.registry.MustRegister(m.duration, m.errors, m.lastSuccess, gauges{m},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
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

// observe sets the sources that gauges are computed from.
func (m *Metrics) observe(status interface{ Status() *Status }, counts Counts) {
	m.sources.Store(&sources{status, counts})
}

// writes returns the counts of writes that the sources know; none before there are sources.
func (m *Metrics) writes() []Written {
	if src := m.sources.Load(); src != nil {
		return src.counts.Writes()
	}
	return nil
}

// look calls each with the present values of the sources and with the totals, or with nil before the first
// plan. Scrapes take turns: counts that arrived out of order would look like counters that
// restarted.
func (m *Metrics) look(each func(s *Status, members map[string]int, totals *tally)) {
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
