package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"strait.io/strait/daemon/api"
)

var (
	frontendConnects = desc("frontend_connects_total",
		"Connections to a port of a service that got a backend, counted by the kernel (for an unconnected UDP "+
			"socket: each choice of a backend).",
		"service", "port", "proto")
	frontendRefused = desc("frontend_refused_total",
		"Connections to a port of a service that were refused because it had no backend.",
		"service", "port", "proto")
	backendConnects = desc("backend_connects_total",
		"Connections that the backends of a service in one cluster got, this node's own cluster included.",
		"service", "remote_cluster")
	mapEntries       = desc("map_entries", "Entries in use in a map of the kernel.", "map")
	mapEntriesLimit  = desc("map_entries_limit", "Entries that a map of the kernel has room for.", "map")
	socketsDestroyed = desc("sockets_destroyed_total",
		"Sockets closed because their backend is gone, so that the client reconnects.", "proto")
	recordsLost = desc("socket_records_lost_total",
		"Choices of a backend that found no room to be remembered: the program sees the backend's address as its peer.")
	recordsSwept = desc("socket_records_swept_total",
		"Sockets that ended without a hook (the kernel's own), and whose records were freed afterwards.")
	boundConnects = desc("bound_source_connects_total",
		"TCP connections to a port of a service by sockets that are bound to a source port. Two of them to services "+
			"that share a backend can collide (EADDRNOTAVAIL).")
)

// trafficDescs are the series that collectTraffic may send.
var trafficDescs = []*prometheus.Desc{frontendConnects, frontendRefused, backendConnects, mapEntries, mapEntriesLimit,
	socketsDestroyed, recordsLost, recordsSwept, boundConnects}

// collectTraffic sends what the kernel counted.
func collectTraffic(ch chan<- prometheus.Metric, d api.Datapath, t *tally) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, float64(value), labels...)
	}
	for s, n := range t.frontends {
		port := strconv.Itoa(int(s.port))
		send(frontendConnects, prometheus.CounterValue, n.connects, s.service, port, s.proto.String())
		send(frontendRefused, prometheus.CounterValue, n.refused, s.service, port, s.proto.String())
	}
	for s, n := range t.backends {
		send(backendConnects, prometheus.CounterValue, n.connects, s.service, s.cluster)
	}
	for _, m := range d.Maps {
		send(mapEntries, prometheus.GaugeValue, m.Used, m.Map)
		send(mapEntriesLimit, prometheus.GaugeValue, m.Limit, m.Map)
	}
	send(socketsDestroyed, prometheus.CounterValue, d.Destroyed.UDP, "UDP")
	send(socketsDestroyed, prometheus.CounterValue, d.Destroyed.TCP, "TCP")
	send(recordsLost, prometheus.CounterValue, d.Sockets.Lost)
	send(recordsSwept, prometheus.CounterValue, d.Sockets.Swept)
	send(boundConnects, prometheus.CounterValue, d.Sockets.Bound)
}
