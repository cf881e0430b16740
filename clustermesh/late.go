package clustermesh

import (
	"cmp"
	"slices"
	"time"
)

// AsOfPeriod is how often a cluster's leader rewrites its record, so that it shows how recent it
// is.
const AsOfPeriod = time.Hour

// lateLag is by how many seconds the clocks of an API server and of a leader may differ, and how
// long an export may take into the record of its cluster.
const lateLag = 600

// MaxLate bounds Content.Late.
const MaxLate = 1024

// Late is an export that is younger than it claims: the record of its cluster lacked it, or had it
// with another type, when it claims to have existed. In conflicts it counts from Since on.
type Late struct {
	Cluster ClusterName `cbor:"1,keyasint" json:"cluster"`
	Service ServiceName `cbor:"2,keyasint" json:"service"`
	// Created is what the export claims. An export with another date is not meant.
	Created int64 `cbor:"3,keyasint" json:"created"`
	// Since is in Unix seconds.
	Since int64 `cbor:"4,keyasint" json:"since"`
}

// Compare orders by cluster, service and date.
func (l Late) Compare(m Late) int {
	return cmp.Or(cmp.Compare(l.Cluster, m.Cluster), l.Service.Compare(m.Service), cmp.Compare(l.Created, m.Created), cmp.Compare(l.Since, m.Since))
}

// History is what is left of the earlier records of a cluster. The zero value is that of a cluster
// which is heard for the first time: its exports are as old as they claim.
type History struct {
	// AsOf is the latest Content.AsOf of the earlier records; 0 if there was none.
	AsOf int64
	// Late are exports of the current record.
	Late []Late
}

// Next returns the history after a cluster has replaced its record. The evidence is what the
// cluster itself wrote, and signed: as of a time, it had no such export. So everybody who held the
// record comes to the same result, also after a partition, and no cluster can accuse another.
func (h History) Next(c ClusterName, before, now Content) History {
	next := History{AsOf: max(h.AsOf, before.AsOf)}
	if next.AsOf == 0 {
		return next // nothing is known, or the leader runs a build that does not write it
	}
	was := make(map[ServiceName]Export, len(before.Exports))
	for _, e := range before.Exports {
		was[e.Service] = e
	}
	since := make(map[ServiceName]int64, len(h.Late))
	for _, l := range h.Late {
		since[l.Service] = l.Since
	}
	changed := next.AsOf + int64(AsOfPeriod/time.Second) // by then at the latest
	for _, e := range now.Exports {
		l := Late{Cluster: c, Service: e.Service, Created: e.Created}
		switch p, had := was[e.Service]; {
		case had && e.Created == p.Created && e.Type == p.Type:
			l.Since = since[e.Service]
		case had && e.Created <= p.Created, e.Created+lateLag < next.AsOf:
			l.Since = changed
		}
		if l.Since > e.Created {
			next.Late = append(next.Late, l)
		}
	}
	return next
}

// lateKey identifies an export with the date that it claims.
type lateKey struct {
	cluster ClusterName
	service ServiceName
	created int64
}

func (l Late) key() lateKey { return lateKey{l.Cluster, l.Service, l.Created} }

// late returns from when the exports count that are younger than they claim, as cluster own sees it:
// by its leader; or as this node has seen itself; or as at least two other clusters report and
// most of those that are not accused, because a node or a cluster that is new has seen nothing.
func (s State) late(own ClusterName) map[lateKey]int64 {
	out, accused := map[lateKey]int64{}, map[lateKey][]int64{}
	clusters := 0
	for o, r := range s.Records.All() {
		if o.Node != "" {
			continue
		}
		clusters++
		for _, l := range r.Late {
			out[l.key()] = l.Since
		}
		for _, l := range r.Content.Late {
			if o.Cluster != own && o.Cluster != l.Cluster {
				accused[l.key()] = append(accused[l.key()], l.Since)
			}
		}
	}
	for k, said := range accused {
		others := clusters - 1 // without own
		if k.cluster != own {
			others--
		}
		if _, seen := out[k]; !seen && len(said) >= 2 && 2*len(said) > others {
			out[k] = slices.Min(said)
		}
	}
	for _, l := range s.Records.Get(Origin{Cluster: own}).Content.Late {
		out[l.key()] = l.Since
	}
	return out
}

// Late returns the exports that are younger than they claim, as cluster own sees it, sorted: those
// that another cluster exports too. Its leader publishes them.
func (s State) Late(own ClusterName) (out []Late) {
	late := s.late(own)
	if len(late) == 0 {
		return nil
	}
	for service, es := range s.Exports(own) {
		for _, e := range es {
			l := Late{e.Cluster, service, e.Created, late[lateKey{e.Cluster, service, e.Created}]}
			if l.Since > l.Created && len(es) > 1 {
				out = append(out, l)
			}
		}
	}
	slices.SortFunc(out, Late.Compare)
	return out[:min(len(out), MaxLate)]
}
