package clustermesh

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Import is the merge of all exports of one service: what every cluster of the set sees.
type Import struct {
	Service ServiceName   `json:"service"`
	Type    ServiceType   `json:"type"`
	Ports   []ServicePort `json:"ports"`
	// AffinitySeconds is the ClientIP session affinity time-out; 0 is no affinity.
	AffinitySeconds uint32 `json:"affinitySeconds,omitempty"`
	// Exporters are the exporting clusters, the oldest export first.
	Exporters []ClusterName `json:"exporters"`
	// Created is the oldest export's creation time in Unix seconds.
	Created int64 `json:"created"`
	// The fields below are the oldest export's; see Export.
	InternalTrafficPolicy string            `json:"internalTrafficPolicy,omitempty"`
	TrafficDistribution   string            `json:"trafficDistribution,omitempty"`
	Families              []Family          `json:"ipFamilies,omitempty"`
	Labels                map[string]string `json:"labels,omitempty"`
	Annotations           map[string]string `json:"annotations,omitempty"`
	// Conflicts are the properties in which the exports disagree.
	Conflicts []Conflict `json:"conflicts,omitempty"`
}

// Conflict is one property of a service in which its exports disagree (KEP-1645 "conflict resolution").
type Conflict struct {
	// Reason is the MCS API's reason for the Conflict condition: "PortConflict", "TypeConflict", ...
	Reason string `json:"reason"`
	// Field is the property: "ports[http:80/TCP]", "type", "sessionAffinity".
	Field string `json:"field"`
	// Winner is the cluster of the oldest export, whose word is in force; Losers disagree with it.
	Winner ClusterName   `json:"winner"`
	Losers []ClusterName `json:"losers"`
	// Total is the number of exporting clusters.
	Total int `json:"total"`
}

// ClusterExport is an export with the cluster that made it.
type ClusterExport struct {
	Cluster ClusterName
	Export
}

// older is the total order in which exports win conflicts (KEP-1645: the oldest; strait: ties by name).
func older(a, b ClusterExport) int {
	return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Cluster, b.Cluster))
}

// Exports gathers the exports of all clusters by service.
func (s State) Exports() map[ServiceName][]ClusterExport {
	out := map[ServiceName][]ClusterExport{}
	for _, c := range s.Clusters() {
		for _, e := range s.Records[Origin{Cluster: c}].Content.Exports {
			out[e.Service] = append(out[e.Service], ClusterExport{c, e})
		}
	}
	return out
}

// Imports merges exports, service by service, oldest import first: by creation time, then cluster, then
// name. Conflicts are warnings: the import works, by the oldest export's word.
func Imports(exports map[ServiceName][]ClusterExport) ([]Import, []Problem) {
	imports := make([]Import, 0, len(exports))
	var problems []Problem
	for _, es := range exports {
		i, p := Merge(es)
		imports = append(imports, i)
		problems = append(problems, p...)
	}
	slices.SortFunc(imports, func(a, b Import) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Exporters[0], b.Exporters[0]),
			a.Service.Compare(b.Service))
	})
	return imports, problems
}

// Merge makes one import of the exports of one service, of which there must be at least one. Ports are
// the union (KEP-1645 "conflict resolution"); every other field is the oldest export's.
func Merge(exports []ClusterExport) (Import, []Problem) {
	exports = slices.Clone(exports)
	slices.SortFunc(exports, older)
	oldest := exports[0]
	out := Import{
		Service:         oldest.Service,
		Type:            oldest.Type,
		AffinitySeconds: oldest.AffinitySeconds,
		Created:         oldest.Created,
	}
	var losers conflicts
	for _, e := range exports {
		out.Exporters = append(out.Exporters, e.Cluster)
		if e.Type != oldest.Type {
			losers.add("type", e.Cluster)
		}
		if e.AffinitySeconds != oldest.AffinitySeconds {
			losers.add("sessionAffinity", e.Cluster)
		}
		for _, p := range e.Ports {
			if !mergePort(&out.Ports, p) {
				losers.add("ports["+p.String()+"]", e.Cluster)
			}
		}
	}
	return out, losers.problems(oldest, len(exports))
}

// mergePort adds a port to the union unless an older export uses its name or its number otherwise.
func mergePort(ports *[]ServicePort, p ServicePort) bool {
	for _, have := range *ports {
		sameName := have.Name == p.Name
		sameNumber := have.Proto == p.Proto && have.Port == p.Port
		if sameName && sameNumber {
			return have.AppProtocol == p.AppProtocol
		}
		if sameName || sameNumber {
			return false
		}
	}
	*ports = append(*ports, p)
	return true
}

// conflicts collects the clusters that lost, by field.
type conflicts struct {
	fields   []string
	clusters map[string][]string
}

func (c *conflicts) add(field string, cluster ClusterName) {
	if c.clusters == nil {
		c.clusters = map[string][]string{}
	}
	if c.clusters[field] == nil {
		c.fields = append(c.fields, field)
	}
	c.clusters[field] = append(c.clusters[field], string(cluster))
}

func (c *conflicts) problems(oldest ClusterExport, total int) (ps []Problem) {
	for _, f := range c.fields {
		who := c.clusters[f]
		ps = append(ps, Problem{
			Object: "ServiceExport " + oldest.Service.String(),
			Field:  f,
			Message: fmt.Sprintf("%d/%d clusters disagree (%s); the oldest export, of %s, is in force",
				len(who), total, strings.Join(who, ", "), oldest.Cluster),
			Try:     "make the Services agree in every exporting cluster",
			Warning: true,
		})
	}
	return ps
}
