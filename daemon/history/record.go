package history

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
)

// recordCauses says what differs in what origins publish.
func recordCauses(before, after clustermesh.ByOrigin[clustermesh.Record]) (out []api.Cause) {
	endpoints := map[from]*count{}
	for _, o := range sorted(after.Since(before)) {
		was, had := before.Lookup(o)
		now, has := after.Lookup(o)
		add := func(kind api.CauseKind, format string, args ...any) {
			out = append(out, api.Cause{Kind: kind, Subject: subject(o), Text: fmt.Sprintf(format, args...)})
		}
		switch {
		case !had && has:
			add(api.CauseMember, "is new: its record came")
		case had && !has:
			add(api.CauseMember, "left: its record is gone")
		case was.Stamp.Epoch != now.Stamp.Epoch && o.Node != "":
			add(api.CauseRecord, "writes again: its daemon started")
		}
		countEndpoints(endpoints, o, was.Content.Endpoints, now.Content.Endpoints)
		if !had || !has {
			continue
		}
		if o.Node != "" {
			nodeCauses(add, was.Content.Node, now.Content.Node)
		}
		contentCauses(add, was.Content, now.Content)
	}
	for _, k := range slices.SortedFunc(maps.Keys(endpoints), from.compare) {
		if text := endpoints[k].String(); text != "" {
			out = append(out, api.Cause{Kind: api.CauseEndpoint, Subject: k.service.String(), Text: text + " in " + string(k.cluster)})
		}
	}
	return out
}

// nodeCauses says what differs in what a node publishes about itself.
func nodeCauses(add func(api.CauseKind, string, ...any), was, now *clustermesh.Node) {
	if was == nil || now == nil || was.Equal(now) {
		return
	}
	switch {
	case was.Drain == nil && now.Drain != nil:
		add(api.CauseDrain, "is drained")
	case was.Drain != nil && now.Drain == nil:
		add(api.CauseDrain, "is drained no more")
	}
	var fields []string
	for _, f := range []struct {
		name    string
		differs bool
	}{
		{"location", was.Locality != now.Locality},
		{"addresses", !slices.Equal(was.Addresses, now.Addresses)},
		{"pod ranges", !slices.Equal(was.Prefixes, now.Prefixes)},
		{"WireGuard key", was.PublicKey != now.PublicKey},
		{"ports", was.WireGuardPort != now.WireGuardPort || was.GossipPort != now.GossipPort},
	} {
		if f.differs {
			fields = append(fields, f.name)
		}
	}
	if len(fields) > 0 {
		add(api.CauseRecord, "has other %s", strings.Join(fields, ", "))
	}
}

// contentCauses says what differs in a record besides its node and endpoints.
func contentCauses(add func(api.CauseKind, string, ...any), was, now clustermesh.Content) {
	switch {
	case was.Drain == nil && now.Drain != nil:
		add(api.CauseDrain, "is drained")
	case was.Drain != nil && now.Drain == nil:
		add(api.CauseDrain, "is drained no more")
	}
	if !slices.Equal(was.Drains, now.Drains) {
		add(api.CauseDrain, "drains other nodes")
	}
	names := func(e clustermesh.Export) clustermesh.ServiceName { return e.Service }
	listCauses(add, "exports", was.Exports, now.Exports, names, clustermesh.Export.Equal)
	global := func(g clustermesh.Global) clustermesh.ServiceName { return g.Service }
	listCauses(add, "shares global", was.Globals, now.Globals, global, clustermesh.Global.Equal)
	if !slices.EqualFunc(was.Mirrors, now.Mirrors, clustermesh.Export.Equal) {
		add(api.CauseExport, "shares other mirrors")
	}
	if !slices.Equal(was.Allocations, now.Allocations) {
		add(api.CauseExport, "gave out other ClusterSetIPs")
	}
	if !slices.Equal(was.Silent, now.Silent) {
		add(api.CauseRecord, "claims %s silent", api.Count(len(now.Silent), "node"))
	}
	if !reflect.DeepEqual(was.Config, now.Config) {
		add(api.CauseConfig, "publishes other configuration")
	}
}

// listCauses says which elements of a list of services came, went and changed.
func listCauses[T any](add func(api.CauseKind, string, ...any), verb string, was, now []T, name func(T) clustermesh.ServiceName, equal func(T, T) bool) {
	if slices.EqualFunc(was, now, equal) {
		return
	}
	had := map[clustermesh.ServiceName]T{}
	for _, e := range was {
		had[name(e)] = e
	}
	for _, e := range now {
		old, is := had[name(e)]
		delete(had, name(e))
		if !is {
			add(api.CauseExport, "%s %s", verb, name(e))
		} else if !equal(old, e) {
			add(api.CauseExport, "%s %s otherwise", verb, name(e))
		}
	}
	for _, gone := range slices.SortedFunc(maps.Keys(had), clustermesh.ServiceName.Compare) {
		add(api.CauseExport, "%s %s no more", verb, gone)
	}
}

// from is a service in a cluster.
type from struct {
	service clustermesh.ServiceName
	cluster clustermesh.ClusterName
}

func (f from) compare(g from) int {
	return cmp.Or(f.service.Compare(g.service), cmp.Compare(f.cluster, g.cluster))
}

// count is what happened to the pods of a service.
type count struct{ came, went, ready, unready int }

func (c *count) String() string {
	var out []string
	for _, x := range []struct {
		n    int
		what string
	}{{c.came, "came"}, {c.went, "went"}, {c.ready, "became ready"}, {c.unready, "stopped being ready"}} {
		if x.n > 0 {
			out = append(out, api.Count(x.n, "endpoint")+" "+x.what)
		}
	}
	return strings.Join(out, ", ")
}

// countEndpoints adds what differs between two lists of a record.
func countEndpoints(all map[from]*count, o clustermesh.Origin, was, now []clustermesh.Endpoint) {
	if slices.EqualFunc(was, now, clustermesh.Endpoint.Equal) {
		return
	}
	type id struct {
		service clustermesh.ServiceName
		addr    string
		port    uint16
	}
	idOf := func(e clustermesh.Endpoint) id {
		i := id{service: e.Service, addr: string(e.Addr.AsSlice())}
		if len(e.Ports) > 0 {
			i.port = e.Ports[0].Port
		}
		return i
	}
	at := func(e clustermesh.Endpoint) *count {
		k := from{e.Service, o.Cluster}
		if all[k] == nil {
			all[k] = &count{}
		}
		return all[k]
	}
	had := make(map[id]clustermesh.Endpoint, len(was))
	for _, e := range was {
		had[idOf(e)] = e
	}
	for _, e := range now {
		old, is := had[idOf(e)]
		delete(had, idOf(e))
		switch {
		case !is:
			at(e).came++
		case !old.Ready && e.Ready:
			at(e).ready++
		case old.Ready && !e.Ready:
			at(e).unready++
		}
	}
	for _, e := range had {
		at(e).went++
	}
}
