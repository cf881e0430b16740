package object

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// The annotations of a global service. The first name in each list is strait's own. The others are
// Cilium's, and are read as Cilium reads them: if several are set, the first counts, and only
// "true", case-insensitively, means yes (cilium pkg/annotation/k8s.go).
var (
	globalNames   = []string{"service.strait.io/global", "service.cilium.io/global", "io.cilium/global-service"}
	sharedNames   = []string{"service.strait.io/shared", "service.cilium.io/shared", "io.cilium/shared-service"}
	affinityNames = []string{"service.strait.io/affinity", "service.cilium.io/affinity", "io.cilium/service-affinity"}
	slicesNames   = []string{"service.strait.io/global-sync-endpoint-slices", "service.cilium.io/global-sync-endpoint-slices"}
)

// readGlobals returns the global services, sorted. An annotation of a Service counts, and
// policies only where there is none.
func (l *reader) readGlobals() (out []clustermesh.Global) {
	for _, s := range l.services {
		if g, ok := l.readGlobal(s); ok {
			out = append(out, g)
		}
	}
	return out
}

func (l *reader) readGlobal(s *Service) (clustermesh.Global, bool) {
	g := clustermesh.Global{Service: s.service(), Shared: true}
	if s.elsewhere() {
		return g, false
	}
	notes := annotations{s, l.report.on("Service", s.Namespace, s.Name), l.readOnly}
	key, yes := notes.yes(globalNames)
	switch why := l.stays(g.Service); {
	case key == "":
		if joined, says, takes := l.joined(s); says != nil {
			return globalFrom(joined, *says, notes, globalNames[0], takes), true
		}
		notes.idle()
		return g, false
	case !yes:
		return g, false
	case why != "":
		notes.report.warning(problem.NamespaceBarred, path(key), why+": not global", "delete the Service's annotation, or use another namespace")
		return g, false
	case s.derivedFor != "":
		notes.report.problem(problem.GlobalImpossible, path(key), "a Service that strait made for a ServiceImport cannot be global", "annotate the exported Service instead")
		return g, false
	case s.traits.Value().kind == corev1.ServiceTypeExternalName:
		notes.report.problem(problem.GlobalImpossible, "spec.type", "a Service of type ExternalName cannot be global", "use another type, or delete the annotation "+key)
		return g, false
	}
	says, ok := readService(s, notes.report)
	if !ok {
		return g, false
	}
	return globalFrom(g, says, notes, key, true), true
}

// globalFrom adds what a Service itself asks for. Key is the annotation that makes it global. If takes
// is false, its own clients are not concerned, so its addresses are left out.
func globalFrom(g clustermesh.Global, e clustermesh.Export, notes annotations, key string, takes bool) clustermesh.Global {
	g.Ports, g.AffinitySeconds = e.Ports, e.AffinitySeconds
	g.InternalTrafficPolicy, g.TrafficDistribution = e.InternalTrafficPolicy, e.TrafficDistribution
	if takes {
		if e.Type != clustermesh.Headless {
			g.IPs = clusterIPs(notes.service, notes.report)
		}
		g.Slices = notes.slices(e.Type)
	}
	if k, shared := notes.yes(sharedNames); k != "" {
		g.Shared = g.Shared && shared
	}
	g.Affinity = notes.affinity(key)
	g.Routing = readRouting(notes.routing())
	return g
}

// annotations reads the annotations of one Service.
type annotations struct {
	service *Service
	report  *objectReport
	// readOnly is as in Config.
	readOnly bool
}

// routing returns the annotations in the form that readRouting takes.
func (a annotations) routing() noted {
	return noted{{a.service.annotations, a.report}}
}

// first returns the annotation that counts among those with the same meaning, with its value in
// lower case. It reports those that contradict it.
func (a annotations) first(names []string) (key, value string) {
	for _, n := range names {
		v, ok := a.service.annotations[n]
		switch {
		case !ok:
		case key == "":
			key, value = n, strings.ToLower(v)
		case strings.ToLower(v) != value:
			a.report.warning(problem.AnnotationIgnored, path(n), fmt.Sprintf("%q contradicts %s=%q, which is used", v, key, value), "delete one of the two annotations")
		}
	}
	return key, value
}

// yes returns the annotation that counts, empty if there is none, and whether its value is true.
func (a annotations) yes(names []string) (key string, yes bool) {
	key, value := a.first(names)
	if key != "" && value != "true" && value != "false" {
		a.report.problem(problem.ValueInvalid, path(key), fmt.Sprintf("%q is neither true nor false: counts as false", value), `write "true" or "false"`)
	}
	return key, value == "true"
}

// slices returns which EndpointSlices the Service asks for, nil for none. A headless Service asks
// for them by default, because its name has no other way to lead to other clusters' pods (cilium
// pkg/clustermesh/endpointslicesync).
func (a annotations) slices(t clustermesh.ServiceType) *clustermesh.GlobalSlices {
	key, asked := a.yes(slicesNames)
	switch {
	case asked, key == "" && t == clustermesh.Headless:
	default:
		return nil
	}
	if a.readOnly {
		field := "spec.clusterIP"
		if asked {
			field = path(key)
		}
		a.report.warning(problem.GlobalImpossible, field, "a cluster without an API server gets no EndpointSlices with other clusters' endpoints; its own are still shared",
			"export the Service with a ServiceExport, and use its name under clusterset.local")
		return nil
	}
	families, _ := readFamilies(a.service, nil)
	return &clustermesh.GlobalSlices{UID: a.service.uid, Families: families}
}

// affinity returns which clusters clients prefer. By default, a service that is global by one of
// Cilium's annotations has Cilium's default, none; strait's own default is to follow locality.
func (a annotations) affinity(global string) clustermesh.GlobalAffinity {
	unsaid := clustermesh.AffinityUnset
	if global != globalNames[0] {
		unsaid = clustermesh.AffinityNone
	}
	key, value := a.first(affinityNames)
	known := []clustermesh.GlobalAffinity{clustermesh.AffinityNone, clustermesh.AffinityLocal, clustermesh.AffinityRemote}
	switch v := clustermesh.GlobalAffinity(value); {
	case value == "":
		return unsaid
	case slices.Contains(known, v):
		return v
	}
	a.report.problem(problem.ValueInvalid, path(key), fmt.Sprintf("%q is none of local, remote, none: not used", value), "write one of them, or delete the annotation")
	return unsaid
}

// idle reports annotations that have no effect without the one that makes a service global.
func (a annotations) idle() {
	for _, names := range [][]string{sharedNames, affinityNames, slicesNames} {
		if key, _ := a.first(names); key != "" {
			a.report.warning(problem.AnnotationIgnored, path(key), "has no effect on a Service that is not global", "add "+globalNames[0]+`: "true", or delete the annotation`)
		}
	}
}

// path is the field path of an annotation.
func path(key string) string { return "metadata.annotations[" + key + "]" }
