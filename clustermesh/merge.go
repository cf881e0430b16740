package clustermesh

import (
	"cmp"
	"maps"
	"slices"
)

// Import is the merge of all exports of one service: what every cluster of the set sees.
type Import struct {
	Service ServiceName   `json:"service"`
	Type    ServiceType   `json:"type"`
	Ports   []ServicePort `json:"ports"`
	// AffinitySeconds is the ClientIP session affinity time-out; 0 means none.
	AffinitySeconds uint32 `json:"affinitySeconds,omitempty"`
	// Exporters are the exporting clusters, the oldest export first.
	Exporters []ClusterName `json:"exporters"`
	// Created is from when the oldest export counts, in Unix seconds: its creation time, unless the
	// clusterset has not had it for so long.
	Created int64 `json:"created"`
	// The fields below are the oldest export's; see Export. Families are from the oldest export
	// that lists any.
	InternalTrafficPolicy string   `json:"internalTrafficPolicy,omitempty"`
	TrafficDistribution   string   `json:"trafficDistribution,omitempty"`
	Families              []Family `json:"ipFamilies,omitempty"`
	// FamiliesDeclared is true if the oldest export's Service declares Families. Only then do they
	// decide which ClusterSetIPs the import has.
	FamiliesDeclared bool              `json:"ipFamiliesDeclared,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	Annotations      map[string]string `json:"annotations,omitempty"`
	// Conflicts are the properties in which the exports disagree.
	Conflicts []Conflict `json:"conflicts,omitempty"`
}

// ClusterExport is an export with the cluster that made it.
type ClusterExport struct {
	Cluster ClusterName
	Export
	// Since is from when an export counts that the clusterset has not had since it was created.
	Since int64
}

// since returns from when an export counts.
func (e ClusterExport) since() int64 { return max(e.Created, e.Since) }

// older orders exports by who wins conflicts: the oldest (KEP-1645), and of equally old ones the
// cluster with the lower name (strait). An export that the clusterset has not had for so long is
// only as old as that.
func older(a, b ClusterExport) int {
	return cmp.Or(cmp.Compare(a.since(), b.since()), cmp.Compare(a.Created, b.Created), cmp.Compare(a.Cluster, b.Cluster))
}

// Exports gathers the exports that cluster own imports, by service, as it sees them. Those that are
// younger than they claim (Late) count from when they came, and those that are older than the
// membership of their cluster from when it joined: what comes later takes nothing over. What is above a
// cluster's quota is left out; see bound.
func (s State) Exports(own ClusterName) map[ServiceName][]ClusterExport {
	out := map[ServiceName][]ClusterExport{}
	late := s.late(own)
	for _, c := range s.Clusters() {
		for _, e := range s.Imported(own, c) {
			out[e.Service] = append(out[e.Service], ClusterExport{c, e, max(late[lateKey{c, e.Service, e.Created}], s.Joined[c])})
		}
	}
	return out
}

// Imports merges the exports of each service, and returns the imports oldest first. Conflicts are
// warnings: the import works by the oldest export.
func Imports(exports map[ServiceName][]ClusterExport) ([]Import, []Problem) {
	imports := make([]Import, 0, len(exports))
	var problems []Problem
	for _, es := range exports {
		i, p := Merge(es)
		imports = append(imports, i)
		problems = append(problems, p...)
	}
	slices.SortFunc(imports, Import.Compare)
	return imports, problems
}

// Compare orders imports by age: by creation time, then oldest exporter, then name. Both must have
// an exporter.
func (i Import) Compare(j Import) int {
	return cmp.Or(cmp.Compare(i.Created, j.Created), cmp.Compare(i.Exporters[0], j.Exporters[0]), i.Service.Compare(j.Service))
}

// Merge merges the exports of one service, at least one, into an import (KEP-1645 "conflict
// resolution"). The oldest is the one that counts from the earliest time. Ports are the union, and families are from the oldest export that lists any. Every
// other field is the oldest export's. The import always has a family.
func Merge(exports []ClusterExport) (Import, []Problem) {
	exports = slices.Clone(exports)
	slices.SortFunc(exports, older)
	oldest := exports[0]
	out := Import{
		Service:               oldest.Service,
		Type:                  oldest.Type,
		AffinitySeconds:       oldest.AffinitySeconds,
		Created:               oldest.since(),
		InternalTrafficPolicy: oldest.InternalTrafficPolicy,
		TrafficDistribution:   oldest.TrafficDistribution,
		Families:              mergeFamilies(exports),
		FamiliesDeclared:      oldest.FamiliesDeclared && len(oldest.Families) > 0,
		Labels:                oldest.Labels,
		Annotations:           oldest.Annotations,
	}
	found := conflicts{total: len(exports)}
	var ports portUnion
	for _, e := range exports {
		out.Exporters = append(out.Exporters, e.Cluster)
		found.compare(oldest, e)
		if e.lacksAny(out.Families) {
			found.add(reasonFamily, "ipFamilies", oldest.Cluster, e.Cluster)
		}
		if !ports.merge(e, &found) && !samePorts(oldest.Ports, e.Ports) {
			found.add(reasonPort, fieldPorts, oldest.Cluster, e.Cluster)
		}
	}
	out.Ports, out.Conflicts = ports.ports, found.list
	problems := falselyOldest(exports)
	for _, c := range out.Conflicts {
		problems = append(problems, c.problem(out.Service))
	}
	return out, problems
}

// compare records the properties, other than ports and families, in which an export disagrees with
// the oldest.
func (c *conflicts) compare(oldest, e ClusterExport) {
	for _, p := range []struct {
		reason, field string
		agree         bool
	}{
		{reasonType, "type", e.Type == oldest.Type},
		{reasonAffinity, "sessionAffinity", !affine(oldest, e) || (e.AffinitySeconds > 0) == (oldest.AffinitySeconds > 0)},
		{reasonAffinityConfig, "sessionAffinityConfig", !affine(oldest, e) || e.AffinitySeconds == 0 ||
			oldest.AffinitySeconds == 0 || e.AffinitySeconds == oldest.AffinitySeconds},
		{reasonPolicy, "internalTrafficPolicy", cmp.Or(e.InternalTrafficPolicy, PolicyCluster) == cmp.Or(oldest.InternalTrafficPolicy, PolicyCluster)},
		{reasonDistribution, "trafficDistribution", distribution(e.TrafficDistribution) == distribution(oldest.TrafficDistribution)},
		{reasonLabels, "exportedLabels", maps.Equal(e.Labels, oldest.Labels)},
		{reasonAnnotations, "exportedAnnotations", maps.Equal(e.Annotations, oldest.Annotations)},
	} {
		if !p.agree {
			c.add(p.reason, p.field, oldest.Cluster, e.Cluster)
		}
	}
}

// affine reports whether session affinity applies to both exports. It does not apply to headless
// Services.
func affine(a, b ClusterExport) bool { return a.Type != Headless && b.Type != Headless }

// distribution returns the current name of a traffic distribution.
func distribution(d string) string {
	if d == PreferClose {
		return PreferSameZone
	}
	return d
}

// mergeFamilies returns the families of the oldest export that lists any. Exports of older daemons
// list none; if no export does, the family is IPv4.
func mergeFamilies(exports []ClusterExport) []Family {
	for _, e := range exports {
		if len(e.Families) > 0 {
			return e.Families
		}
	}
	return []Family{IPv4}
}

// lacksAny reports whether the export lacks one of the families, so that traffic of that family
// cannot reach it. An export that lists no families is not judged.
func (e ClusterExport) lacksAny(families []Family) bool {
	return len(e.Families) > 0 && slices.ContainsFunc(families, func(f Family) bool { return !slices.Contains(e.Families, f) })
}

// portUnion is the union of the exports' ports, with the cluster from which each comes.
type portUnion struct {
	ports  []ServicePort
	owners []ClusterName
}

// merge adds an export's ports, except those whose name or number an older export uses differently.
// Each of these is a conflict, and so is another appProtocol. merge reports whether there was a
// conflict.
func (u *portUnion) merge(e ClusterExport, found *conflicts) (clash bool) {
	for _, p := range e.Ports {
		i := slices.IndexFunc(u.ports, func(q ServicePort) bool { return q.Name == p.Name })
		if i < 0 {
			i = slices.IndexFunc(u.ports, func(q ServicePort) bool { return q.Proto == p.Proto && q.Port == p.Port })
		}
		switch {
		case i < 0:
			u.ports, u.owners = append(u.ports, p), append(u.owners, e.Cluster)
		case u.ports[i] == p:
		case u.ports[i].Is(p):
			clash = true
			found.add(reasonPort, fieldPorts+"["+p.String()+"].appProtocol", u.owners[i], e.Cluster)
		default:
			clash = true
			found.add(reasonPort, fieldPorts+"["+p.String()+"]", u.owners[i], e.Cluster)
		}
	}
	return clash
}

// samePorts compares two lists as sets.
func samePorts(a, b []ServicePort) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(p ServicePort) bool { return !slices.Contains(b, p) })
}
