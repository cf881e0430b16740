package api

import (
	"cmp"
	"slices"
	"strings"

	"strait.io/strait/internal/problem"
)

// Export is what one cluster exports under a name, as the node that answers sees it.
type Export struct {
	// Name is "namespace/name".
	Name    string `json:"name"`
	Cluster string `json:"cluster"`
	// Type is that of the Service; empty if the export is not in force.
	Type string `json:"type,omitempty"`
	// Ready is how many of Total endpoints of the cluster are ready. A pod counts once.
	Ready int `json:"ready"`
	Total int `json:"total"`
	// Share is which part of new connections from the node goes to the cluster, 0 to 1: the largest
	// of any frontend.
	Share float64 `json:"share"`
	// Problems are those of the export and its Service that the node knows.
	Problems []problem.Problem `json:"problems,omitempty"`
}

// ExportList is what strait exports answers, by name and cluster.
type ExportList struct {
	Meta
	SeenFrom Viewpoint `json:"seenFrom"`
	Items    []Export  `json:"items"`
}

// NewExportList makes an answer of the services and Problems that a node knows. An export of the
// node's own cluster that is not in force is in it if it has a Problem.
func NewExportList(services *ServiceList, problems []problem.Problem) *ExportList {
	out := []Export{}
	for _, s := range services.Items {
		for _, cluster := range s.Exporters {
			e := Export{Name: s.Name, Cluster: cluster, Type: s.Type}
			e.Ready, e.Total, e.Share = s.partOf(cluster)
			out = append(out, e)
		}
	}
	for _, p := range problems {
		name, cluster, is := exported(p.Ref)
		if cluster = cmp.Or(cluster, services.SeenFrom.Cluster); !is {
			continue
		}
		i := slices.IndexFunc(out, func(e Export) bool { return e.Name == name && e.Cluster == cluster })
		if i < 0 && (p.Ref.Kind != kindService || p.Code == problem.ExportImpossible) {
			i, out = len(out), append(out, Export{Name: name, Cluster: cluster})
		}
		if i >= 0 {
			out[i].Problems = append(out[i].Problems, p)
		}
	}
	slices.SortFunc(out, func(a, b Export) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Cluster, b.Cluster)) })
	return &ExportList{Meta{APIVersion, KindExports}, services.SeenFrom, out}
}

const kindService = "Service"

// exported returns the export that an object is, or that it is the Service of.
func exported(r problem.Ref) (name, cluster string, is bool) {
	kind, _, _ := strings.Cut(r.Kind, ".")
	return r.Namespace + "/" + r.Name, r.Cluster, kind == "ServiceExport" || r.Kind == kindService
}

// partOf counts a cluster's endpoints of the service, and what of new connections they get.
func (s Service) partOf(cluster string) (ready, total int, share float64) {
	seen := map[string]bool{}
	for _, f := range s.Frontends {
		part := 0.0
		for _, e := range f.Endpoints {
			if e.Cluster != cluster || !f.SameFamily(e) {
				continue
			}
			part += e.Share
			id := cmp.Or(e.Pod, e.Addr.Addr().String())
			was, again := seen[id]
			seen[id] = e.Ready && (was || !again)
		}
		share = max(share, part)
	}
	for _, ok := range seen {
		if ok {
			ready++
		}
	}
	return ready, len(seen), min(share, 1)
}
