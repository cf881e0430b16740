package mcs

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// What fits stays as it is, and nothing is reported.
func TestFitKeeps(t *testing.T) {
	i := strange(func(string, string) string { return "" })
	i.Labels, i.TrafficDistribution = map[string]string{"a/b": "c"}, clustermesh.PreferSameZone
	got, problems := fit(i)
	if len(problems) > 0 || !reflect.DeepEqual(got, i) {
		t.Errorf("problems %v, import %+v, want %+v", problems, got, i)
	}
}

// Each field that an API server would refuse is left out, and named once; the rest of the import
// stays.
func TestFitLeavesOut(t *testing.T) {
	given := strange(func(_, bad string) string { return bad })
	before := strange(func(_, bad string) string { return bad })
	got, problems := fit(given)
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
		if p.Code != problem.ImportLowered || !p.Warning || !strings.Contains(p.Message, "left out") {
			t.Errorf("problem %+v", p)
		}
	}
	slices.Sort(fields)
	want := []string{"annotations", "endpoints.hostname", "endpoints.ports.name", "endpoints.zone", "internalTrafficPolicy", "labels", "ports.appProtocol", "ports.name", "trafficDistribution"}
	if !slices.Equal(fields, want) {
		t.Errorf("problems with %v, want %v: %v", fields, want, problems)
	}
	if len(got.Ports) != 1 || got.Ports[0] != (clustermesh.ServicePort{Proto: l4.TCP, Port: 80}) {
		t.Errorf("ports %v", got.Ports)
	}
	if len(got.Endpoints) != 1 || len(got.Backends) != 1 || got.Backends[0].Addr != given.Backends[0].Addr {
		t.Errorf("endpoints %v, backends %v", got.Endpoints, got.Backends)
	}
	if !reflect.DeepEqual(given, before) {
		t.Errorf("fit changed what it was given: %+v", given)
	}
}

// An endpoint of a cluster whose name cannot be a label, or part of the name of a node, is left
// out: its slices would have that label, and hints such a name.
func TestFitClusterName(t *testing.T) {
	for _, name := range []clustermesh.ClusterName{"two words", "West_1"} {
		i := strange(func(string, string) string { return "" })
		other, backend := i.Endpoints[0], i.Backends[0]
		other.Cluster, backend.Cluster = name, name
		i.Endpoints, i.Backends = append(i.Endpoints, other), append(i.Backends, backend)
		got, problems := fit(i)
		if len(got.Endpoints) != 1 || len(got.Backends) != 1 || len(problems) != 1 || problems[0].Field != "endpoints.cluster" {
			t.Errorf("%s: endpoints %v, backends %v, problems %v", name, got.Endpoints, got.Backends, problems)
		}
	}
}

// A port of a protocol that Services of this build's Kubernetes cannot have is left out, with the
// endpoints behind it. The other ports stay.
func TestFitProtocol(t *testing.T) {
	i := strange(func(string, string) string { return "" })
	h3, backend := i.Ports[0], i.Backends[0]
	h3.Name, h3.Proto, h3.Port = "h3", 33, 443
	backend.Port = h3
	i.Ports, i.Backends = append(i.Ports, h3), append(i.Backends, backend)
	i.Endpoints[0].Ports = append(i.Endpoints[0].Ports, clustermesh.EndpointPort{Name: "h3", Proto: 33, Port: 8443})
	got, problems := fit(i)
	if len(got.Ports) != 1 || len(got.Backends) != 1 || len(got.Endpoints) != 1 || len(got.Endpoints[0].Ports) != 1 {
		t.Errorf("%+v", got)
	}
	if len(problems) != 2 || problems[0].Field != "ports.protocol" || problems[1].Field != "endpoints.ports.protocol" {
		t.Errorf("problems %v", problems)
	}
}

// Whatever comes from other clusters, what is left fits the rules.
func TestFitProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		got, _ := fit(strange(func(what, _ string) string {
			return rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z0-9._/-]{0,70}`)).Draw(t, what)
		}))
		legal := func(what, value string, faults func(string) []string) {
			if value != "" && len(faults(value)) > 0 {
				t.Fatalf("%s %q: %v", what, value, faults(value))
			}
		}
		for k, v := range got.Labels {
			legal("label", k, validation.IsQualifiedName)
			legal("label", v, validation.IsValidLabelValue)
		}
		for k := range maps.Keys(got.Annotations) {
			legal("annotation", k, validation.IsQualifiedName)
		}
		for _, p := range got.Ports {
			legal("port", p.Name, validation.IsDNS1123Label)
			legal("protocol", p.AppProtocol, validation.IsQualifiedName)
		}
		for _, e := range got.Endpoints {
			legal("hostname", e.Hostname, validation.IsDNS1123Label)
			legal("zone", e.Zone, validation.IsValidLabelValue)
			legal("cluster", string(e.Cluster), validation.IsDNS1123Label)
			for _, p := range e.Ports {
				legal("port of an endpoint", p.Name, validation.IsDNS1123Label)
			}
		}
		for _, b := range got.Backends {
			legal("zone", b.Zone, validation.IsValidLabelValue)
			legal("port of a backend", b.Port.Name, validation.IsDNS1123Label)
		}
	})
}

// strange returns an import with values of its own, by the field and a value that no API server
// accepts.
func strange(value func(field, bad string) string) Import {
	port := clustermesh.ServicePort{Name: value("ports.name", "http_api"), Proto: l4.TCP, Port: 80, AppProtocol: value("ports.appProtocol", "a b")}
	addr, zone := netip.MustParseAddr("10.2.0.1"), value("zone", "rack 7")
	i := Import{
		Import: clustermesh.Import{Service: serve, Type: clustermesh.ClusterSetIP, Exporters: []clustermesh.ClusterName{"c2"}, Ports: []clustermesh.ServicePort{port},
			InternalTrafficPolicy: value("internalTrafficPolicy", "Near"), TrafficDistribution: value("trafficDistribution", "PreferSameRack")},
		Endpoints: []clustermesh.ClusterEndpoint{{Cluster: "c2", Endpoint: clustermesh.Endpoint{
			Addr: addr, Zone: zone, Hostname: value("hostname", "a.b"), Ready: true, Serving: true,
			Ports: []clustermesh.EndpointPort{{Name: value("endpoints.ports.name", "http_api"), Proto: l4.TCP, Port: 8080}},
		}}},
		Backends: []Backend{{Port: port, Addr: netip.AddrPortFrom(addr, 8080), Cluster: "c2", Zone: zone, Ready: true, Serving: true}},
	}
	if k := value("labels", "a b"); k != "" {
		i.Labels = map[string]string{"team": value("label", "x y"), k: ""}
	}
	if k := value("annotations", "a b"); k != "" {
		i.Annotations = map[string]string{k: "", "note": "any text"}
	}
	return i
}
