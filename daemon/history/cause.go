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

// maxCauses and maxEffects bound an item.
const (
	maxCauses  = 24
	maxEffects = 64
)

// ItemOf returns what differs between two turns, and whether anything does. Before is nil for the first
// turn that is noted. It looks only at what differs, besides one pointer for each service.
func ItemOf(before, after *Turn) (item api.HistoryItem, differs bool) {
	item = api.HistoryItem{Time: after.Time(), Error: after.Error}
	if before == nil {
		before = &Turn{Result: after.Result, Problems: after.Problems}
		before.Inputs.State = after.Inputs.State
	}
	item.Causes = causes(before, after)
	item.Effects = effects(before.Result, after.Result)
	item.Peers = len(after.Result.Desired.Peers) - len(before.Result.Desired.Peers)
	item.Routes = len(after.Result.Desired.Routes) - len(before.Result.Desired.Routes)
	if len(item.Effects) > 0 && len(item.Causes) == 0 {
		item.Causes = []api.Cause{{Kind: api.CauseTime, Subject: "time", Text: "has passed: a ramp or a drain goes on"}}
	}
	differs = len(item.Causes)+len(item.Effects) > 0 || before.Error != after.Error || item.Peers != 0 || item.Routes != 0
	if n := len(item.Causes) - maxCauses; n > 0 {
		item.Causes, item.MoreCauses = item.Causes[:maxCauses], n
	}
	if n := len(item.Effects) - maxEffects; n > 0 {
		item.Effects, item.MoreEffects = item.Effects[:maxEffects], n
	}
	return item, differs
}

// causes lists what differs in the inputs of two turns, the most telling first.
func causes(before, after *Turn) (out []api.Cause) {
	add := func(kind api.CauseKind, subject, format string, args ...any) {
		out = append(out, api.Cause{Kind: kind, Subject: subject, Text: fmt.Sprintf(format, args...)})
	}
	if after.Start != "" {
		add(api.CauseStarted, "straitd", "%s started", after.Start)
	}
	a, b := &before.Inputs, &after.Inputs
	for _, o := range sorted(maps.Keys(after.Result.Dead)) {
		if !before.Result.Dead[o] {
			add(api.CauseDead, subject(o), "is dead")
		}
	}
	for _, o := range sorted(maps.Keys(before.Result.Dead)) {
		if !after.Result.Dead[o] {
			add(api.CauseDead, subject(o), "is not dead any more")
		}
	}
	if after.Start == "" { // a daemon that starts has not heard anyone yet
		out = append(out, contactCauses(a.State.Contacts, b.State.Contacts)...)
	}
	for _, o := range sorted(maps.Keys(b.Faults)) {
		if f := b.Faults[o]; a.Faults[o] != f {
			add(api.CauseTunnel, "tunnel to "+o.String(), "%s", f.Why)
		}
	}
	for _, o := range sorted(maps.Keys(a.Faults)) {
		if _, still := b.Faults[o]; !still {
			add(api.CauseTunnel, "tunnel to "+o.String(), "carries packets again")
		}
	}
	out = append(out, recordCauses(a.State.Records, b.State.Records)...)
	out = append(out, configCauses(before, after)...)
	out = append(out, problemCauses(before.Problems, after.Problems)...)
	slices.SortStableFunc(out, func(x, y api.Cause) int {
		return cmp.Compare(slices.Index(api.CauseKinds, x.Kind), slices.Index(api.CauseKinds, y.Kind))
	})
	return out
}

func subject(o clustermesh.Origin) string {
	if o.Node == "" {
		return "cluster " + string(o.Cluster)
	}
	return "node " + o.String()
}

// manyNodes is from how many nodes of a cluster on they are counted, not named.
const manyNodes = 4

// contactCauses says which nodes are heard otherwise. Many of one cluster to which the same happened are
// one cause.
func contactCauses(before, after clustermesh.ByOrigin[clustermesh.Contact]) (out []api.Cause) {
	type move struct {
		cluster  clustermesh.ClusterName
		was, now clustermesh.Contact
	}
	moved := map[move][]clustermesh.Origin{}
	var order []move
	for _, o := range sorted(after.Since(before)) {
		was, now := before.Get(o), after.Get(o)
		if was == now {
			continue
		}
		k := move{o.Cluster, was, now}
		if moved[k] == nil {
			order = append(order, k)
		}
		moved[k] = append(moved[k], o)
	}
	for _, k := range order {
		nodes := moved[k]
		text := fmt.Sprintf("%s → %s", k.was, k.now)
		if len(nodes) >= manyNodes {
			out = append(out, api.Cause{Kind: api.CauseContact, Subject: "cluster " + string(k.cluster), Text: fmt.Sprintf("%d nodes %s", len(nodes), text)})
			continue
		}
		for _, o := range nodes {
			out = append(out, api.Cause{Kind: api.CauseContact, Subject: subject(o), Text: text})
		}
	}
	return out
}

// configCauses says what differs of what this node itself was told or has measured.
func configCauses(before, after *Turn) (out []api.Cause) {
	a, b := &before.Inputs, &after.Inputs
	add := func(differs bool, kind api.CauseKind, subject, text string) {
		if differs {
			out = append(out, api.Cause{Kind: kind, Subject: subject, Text: text})
		}
	}
	if after.Start != "" { // the first turn of a life differs in all of it
		add(!reflect.DeepEqual(a.Config, b.Config) && a.Self == b.Self, api.CauseConfig, "configuration", "of this node changed")
		return out
	}
	add(a.Learning && !b.Learning, api.CauseConfig, "this node", "knows the whole clusterset")
	add(!a.Learning && b.Learning, api.CauseConfig, "this node", "does not know all of the clusterset any more")
	add(before.Leads && !after.Leads, api.CauseLeader, "this node", "leads its cluster no more")
	add(!before.Leads && after.Leads, api.CauseLeader, "this node", "leads its cluster")
	for _, c := range slices.Sorted(maps.Keys(b.Far)) {
		add(a.Far[c] != b.Far[c], api.CauseConfig, "cluster "+string(c), fmt.Sprintf("is %d steps of round-trip time away, before %d", b.Far[c], a.Far[c]))
	}
	add(!slices.Equal(a.Remotes, b.Remotes), api.CauseConfig, "pins", "of other clusters' pod ranges changed")
	add(!reflect.DeepEqual(a.Guests, b.Guests), api.CauseConfig, "peers", "outside every cluster changed")
	add(!slices.Equal(a.ClusterIPs, b.ClusterIPs), api.CauseConfig, "ranges", "of this cluster's ClusterIPs changed")
	add(!reflect.DeepEqual(a.Host, b.Host), api.CauseConfig, "addresses", "or networks of this machine changed")
	add(!maps.Equal(a.State.Quotas, b.State.Quotas), api.CauseConfig, "quotas", "of other clusters' exports changed")
	return out
}

// problemCauses says which Problems came and went. Both lists are sorted.
func problemCauses(before, after []clustermesh.Problem) (out []api.Cause) {
	if slices.Equal(before, after) {
		return nil
	}
	had := make(map[clustermesh.Problem]bool, len(before))
	for _, p := range before {
		had[p] = true
	}
	for _, p := range after {
		if had[p] {
			delete(had, p)
			continue
		}
		out = append(out, api.Cause{Kind: api.CauseProblem, Subject: string(p.Code), Text: shortened(p.String())})
	}
	for _, p := range before {
		if had[p] {
			out = append(out, api.Cause{Kind: api.CauseProblem, Subject: string(p.Code), Text: "solved: " + shortened(p.Object)})
		}
	}
	return out
}

// shortened bounds a text for people.
func shortened(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
