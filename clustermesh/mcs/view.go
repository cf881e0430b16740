// Package mcs decides what the leader of a cluster wants in its API server: ServiceImports, derived
// Services, EndpointSlices and the conditions of exports and imports, by the Multi-Cluster Services
// API (KEP-1645).
//
// Inputs are a View of the clusterset and, for one service, what the API server has; outputs are
// ordered operations and Problems. Pure. It must not know how objects are read or written (package
// kube), nor where a View comes from.
package mcs

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/enum"
)

// View is what the leader of a cluster knows. It is a value: never changed once made.
type View struct {
	Cluster clustermesh.ClusterName
	// Imports are the imports of all services that any cluster exports, sorted by name. It is a
	// list because a map would be rebuilt at each change of an endpoint.
	Imports []Source[Import]
	// Globals are the cluster's own global Services that ask for EndpointSlices, sorted by name.
	Globals []Source[Global]
	// Exports are the cluster's own ServiceExports and their aliases, including invalid ones,
	// sorted by service.
	Exports []clustermesh.ExportStatus
	// Locals are what the cluster's own endpoints bear of its global Services, and of its exports of
	// other API groups, sorted by name. That of an import is in the import.
	Locals []Source[Local]
	// Namespaces are those that exist in the cluster. Nil means that every namespace counts as
	// existing.
	Namespaces map[string]bool
	// Clusters holds what is known of every cluster of the set. A missing cluster is Unknown.
	Clusters map[clustermesh.ClusterName]Knowledge
	// Members are the clusters whose word this cluster takes, sorted. Nil means that it takes every
	// cluster's.
	Members []clustermesh.ClusterName
	// Problems are those of the cluster's own Services and exports that no condition reports. They
	// are reported as Events.
	Problems map[clustermesh.ServiceName][]clustermesh.Problem
	Config   Config
}

// Knowledge is how much is known of what a cluster exports.
type Knowledge uint8

// Absence is a fact only for a cluster that has Current, or is no member.
const (
	// Unknown: there is no record of what it exports.
	Unknown Knowledge = iota
	// Held: it is not heard, so its last record may be out of date.
	Held
	// Current: it is heard, and its record is here.
	Current
)

// Config is what the administrator of the cluster chose.
type Config struct {
	ImportSlices  SliceMode
	ClusterSetIPs IPMode
	// DerivedPrefix begins the names of derived Services. Nil means the constant DerivedPrefix. If
	// it is empty, derived Services have the names of their imports.
	DerivedPrefix *string
	Barred        clustermesh.Barred
}

// SliceMode selects the imports that have EndpointSlices with the labels of the MCS API.
type SliceMode string

// The slice modes; the empty one is SlicesAll.
const (
	SlicesAll      SliceMode = "all"
	SlicesHeadless SliceMode = "headless"
	SlicesNone     SliceMode = "none"
)

// UnmarshalText accepts the names of the modes.
func (m *SliceMode) UnmarshalText(b []byte) error {
	return enum.Decode(m, b, SlicesAll, SlicesHeadless, SlicesNone)
}

// IPMode is the source of ClusterSetIPs.
type IPMode string

// The IP modes; the empty one is IPsDerived.
const (
	// IPsDerived: they are the ClusterIPs of derived Services.
	IPsDerived IPMode = "derived"
	// IPsCIDR: they are addresses from a range of strait's own, in Import.IPs.
	IPsCIDR IPMode = "cidr"
)

// UnmarshalText accepts the names of the modes.
func (m *IPMode) UnmarshalText(b []byte) error { return enum.Decode(m, b, IPsDerived, IPsCIDR) }

// Source makes an import or a global service when it is needed: all imports together are as large as
// all endpoints of the clusterset.
type Source[T any] interface {
	Name() clustermesh.ServiceName
	Make() T
	// Same reports whether other is known to make the same, without making it.
	Same(other Source[T]) bool
}

// Import is an import with its addresses and endpoints.
type Import struct {
	clustermesh.Import
	// IPs are its ClusterSetIPs in mode IPsCIDR. They are not read in mode IPsDerived.
	IPs []netip.Addr
	// Endpoints are all endpoints of all exporting clusters.
	Endpoints []clustermesh.ClusterEndpoint
	// Backends are the endpoints that this cluster would use now.
	Backends []Backend
	// Local is what the cluster's own endpoints bear; nil if it does not export the service.
	Local *Local
}

// Global is a global Service of the cluster that asks for EndpointSlices with the other clusters'
// endpoints.
type Global struct {
	Service             clustermesh.ServiceName
	Slices              clustermesh.GlobalSlices
	TrafficDistribution string
	// Endpoints are those of this cluster and of the clusters whose endpoints the Service's clients
	// use.
	Endpoints []clustermesh.ClusterEndpoint
}

// Backend is an endpoint that serves one port of an import.
type Backend struct {
	Port    clustermesh.ServicePort
	Addr    netip.AddrPort
	Cluster clustermesh.ClusterName
	// Node and Zone are empty if unknown.
	Node        clustermesh.NodeName
	Zone        string
	Ready       bool
	Serving     bool
	Terminating bool
}

// slicesFor reports whether imports of a type get EndpointSlices of the MCS API.
func (c Config) slicesFor(t clustermesh.ServiceType) bool {
	switch c.ImportSlices {
	case SlicesNone:
		return false
	case SlicesHeadless:
		return t == clustermesh.Headless
	}
	return true
}

func (c Config) derived() bool { return c.ClusterSetIPs != IPsCIDR }

func (v View) hasNamespace(ns string) bool { return v.Namespaces == nil || v.Namespaces[ns] }

// wanted returns the import of a name, if this cluster should have one.
func (v View) wanted(s clustermesh.ServiceName) (Import, bool) {
	i, ok := v.source(s)
	if !ok || v.Config.Barred.Why(s) != "" {
		return Import{}, false
	}
	return i.Make(), true
}

func (v View) source(s clustermesh.ServiceName) (Source[Import], bool) {
	return find(v.Imports, s, Source[Import].Name)
}

func (v View) export(s clustermesh.ServiceName) (clustermesh.ExportStatus, bool) {
	return find(v.Exports, s, nameOfExport)
}

func nameOfExport(e clustermesh.ExportStatus) clustermesh.ServiceName { return e.Service }

// complete reports whether the knowledge of this cluster is current, and the exports of every cluster that
// is heard are known.
func (v View) complete() bool {
	if v.Clusters[v.Cluster] != Current {
		return false
	}
	for c, k := range v.Clusters {
		if k == Unknown && !v.Settled(c) {
			return false
		}
	}
	return true
}

// Settled reports whether a cluster exports nothing but what is in the view: its knowledge is current, or
// it was evicted, so that its records do not count.
func (v View) Settled(c clustermesh.ClusterName) bool {
	return v.Clusters[c] == Current || c != "" && v.Members != nil && !slices.Contains(v.Members, c)
}

// Changed returns the services for which the two views may want different objects, sorted.
func Changed(old, now View) []clustermesh.ServiceName {
	all := old.Cluster != now.Cluster || !reflect.DeepEqual(old.Config, now.Config) || learned(old, now)
	same := func(s clustermesh.ServiceName) bool {
		return !all && old.hasNamespace(s.Namespace) == now.hasNamespace(s.Namespace)
	}
	out := differingSources(old.Imports, now.Imports, same)
	out = append(out, differingSources(old.Globals, now.Globals, same)...)
	out = append(out, differingSources(old.Locals, now.Locals, same)...)
	out = append(out, differing(old.Exports, now.Exports, nameOfExport, func(e, f clustermesh.ExportStatus) bool { return !all && e == f })...)
	for _, ps := range []map[clustermesh.ServiceName][]clustermesh.Problem{old.Problems, now.Problems} {
		for s := range ps {
			if !slices.Equal(old.Problems[s], now.Problems[s]) {
				out = append(out, s)
			}
		}
	}
	slices.SortFunc(out, clustermesh.ServiceName.Compare)
	return slices.Compact(out)
}

func differingSources[T any](old, now []Source[T], same func(clustermesh.ServiceName) bool) []clustermesh.ServiceName {
	return differing(old, now, Source[T].Name, func(a, b Source[T]) bool { return same(a.Name()) && a.Same(b) })
}

// KnowsMore reports whether clusters, namespaces or the configuration have changed. If so, objects
// whose deletion had to wait, and which are in neither view, may be deleted now.
func KnowsMore(old, now View) bool {
	return learned(old, now) || !reflect.DeepEqual(old.Config, now.Config) || !maps.Equal(old.Namespaces, now.Namespaces)
}

// learned reports whether it changed which clusters' silence means something.
func learned(old, now View) bool {
	return !maps.Equal(old.Clusters, now.Clusters) || !reflect.DeepEqual(old.Members, now.Members)
}
