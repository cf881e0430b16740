package api

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics are the daemon's Prometheus metrics, in a registry of their own. What a View can tell is
// computed when Prometheus asks; only events (applies) are counted as they happen.
type Metrics struct {
	registry *prometheus.Registry
	source   atomic.Pointer[Source]
	now      func() time.Time

	mu     sync.Mutex
	totals tally // of the kernel's counters, as far as scrapes saw them

	duration    *prometheus.HistogramVec
	errors      *prometheus.CounterVec
	lastSuccess *prometheus.GaugeVec
}

// NewMetrics makes metrics that know no view yet; New gives them one.
func NewMetrics() *Metrics {
	target := []string{"target"}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		now:      time.Now,
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "strait_reconcile_duration_seconds",
			Help: "Time to apply one plan to a target (route, wireguard, socklb, …), failures included.",
			// From one changed endpoint (1 ms) to 100,000 backends into empty maps (1 s), and beyond.
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, target),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "strait_reconcile_errors_total",
			Help: "Applies to a target that ended in an error; each is tried again.",
		}, target),
		lastSuccess: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "strait_reconcile_last_success_timestamp_seconds",
			Help: "When a target last matched its plan, in Unix time.",
		}, target),
	}
	m.registry.MustRegister(m.duration, m.errors, m.lastSuccess, viewCollector{m},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Observe counts one apply to target: how long it took and how it ended.
func (m *Metrics) Observe(target string, d time.Duration, err error) {
	m.duration.WithLabelValues(target).Observe(d.Seconds())
	failed := m.errors.WithLabelValues(target) // present at 0 from the first apply, so that rate() sees the first error
	if err != nil {
		failed.Inc()
		return
	}
	m.lastSuccess.WithLabelValues(target).Set(float64(m.now().UnixNano()) / 1e9)
}

// observe makes src the view that gauges are computed from.
func (m *Metrics) observe(src Source) { m.source.Store(&src) }

// look returns the present view, or nil, and the totals with it. One scrape at a time: a view that is older
// than what was counted before it would look like counters that began anew.
func (m *Metrics) look() (*View, tally) {
	src := m.source.Load()
	if src == nil {
		return nil, tally{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v := (*src).View()
	if v == nil {
		return nil, tally{}
	}
	m.totals = m.totals.with(v)
	return v, m.totals
}
