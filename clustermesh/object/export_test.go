package object

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
)

type serviceExport = mcsv1beta1.ServiceExport

// The verdicts are what the conditions Valid and Ready of a ServiceExport say.
func TestExportStatus(t *testing.T) {
	named := func(ns, name string, edit func(*corev1.Service)) *corev1.Service {
		return service(func(s *corev1.Service) {
			s.Namespace, s.Name = ns, name
			if edit != nil {
				edit(s)
			}
		})
	}
	objs := typed{
		Config: Config{BarredPatterns: []string{"team-*"}},
		Services: []*corev1.Service{named("default", "ok", nil), named("default", "kubernetes", nil), named("kube-system", "dns", nil), named("team-1", "x", nil),
			named("default", "name", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }),
			named("default", "portless", func(s *corev1.Service) { s.Spec.Ports = nil }),
			named("default", "pods", func(s *corev1.Service) { s.Spec.Ports, s.Spec.ClusterIP = nil, "None" })},
		ServiceImports: []*mcsv1beta1.ServiceImport{{ObjectMeta: meta("team-2", "y")}, {ObjectMeta: meta("default", "y")}},
		Aliases:        map[string][]*metav1.PartialObjectMetadata{KEPImportResource: {{ObjectMeta: meta("team-2", "y")}, {ObjectMeta: meta("default", "y")}}},
	}
	for _, n := range []string{"default/ok", "default/kubernetes", "kube-system/dns", "team-1/x", "default/name", "default/portless", "default/pods", "default/gone", "kube-system/gone"} {
		ns, name, _ := strings.Cut(n, "/")
		objs.Exports = append(objs.Exports, export(ns, name))
	}
	got := objs.local()
	var lines []string
	for _, s := range got.ExportStatus {
		lines = append(lines, fmt.Sprintf("%s valid=%v exported=%v %s: %s", s.Service, s.Valid, s.Exported, s.Reason, s.Message))
	}
	want := []string{
		"default/gone valid=false exported=false NoService: there is no Service default/gone",
		"default/kubernetes valid=true exported=false Failed: Services of the cluster itself are barred",
		"default/name valid=false exported=false InvalidServiceType: a Service of type ExternalName cannot be exported",
		"default/ok valid=true exported=true Valid: ",
		"default/pods valid=true exported=true Valid: ",
		"default/portless valid=true exported=false Failed: no port of Service default/portless can be used",
		"kube-system/dns valid=true exported=false Failed: Services of the cluster itself are barred",
		"kube-system/gone valid=false exported=false NoService: there is no Service kube-system/gone",
		`team-1/x valid=true exported=false Failed: namespace team-1 is barred by the pattern "team-*" in the configuration`,
	}
	if !reflect.DeepEqual(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	for _, e := range got.Exports {
		if e.Service.Name == "pods" && (e.Type != clustermesh.Headless || len(e.Ports) != 0) {
			t.Errorf("headless without ports: %+v", e)
		}
	}
	if len(got.Exports) != 2 {
		t.Errorf("exports %v", got.Exports)
	}
	var imports []string
	for _, p := range got.Problems {
		if strings.HasPrefix(p.Object, "ServiceImport") {
			imports = append(imports, p.Object)
		}
	}
	if !slices.Equal(imports, []string{"ServiceImport team-2/y", "ServiceImport.multicluster.k8s.io team-2/y"}) {
		t.Errorf("problems of imports: %v", imports)
	}
}

// An alias exports like a ServiceExport, and yields to a ServiceExport of the same name. It has no conditions of ours: what
// they would say are Problems.
func TestAliases(t *testing.T) {
	other := service(func(s *corev1.Service) { s.Name = "other" })
	elsewhere := service(func(s *corev1.Service) { s.Name, s.Spec.Type = "elsewhere", corev1.ServiceTypeExternalName })
	portless := service(func(s *corev1.Service) { s.Name, s.Spec.Ports = "portless", nil })
	e := export("default", "serve")
	e.CreationTimestamp = metav1.NewTime(time.Unix(500, 0))
	created := func(name string, seconds int64) *metav1.PartialObjectMetadata {
		m := &metav1.PartialObjectMetadata{ObjectMeta: meta("default", name)}
		if seconds > 0 {
			m.CreationTimestamp = metav1.NewTime(time.Unix(seconds, 0))
		}
		return m
	}
	got := typed{Services: []*corev1.Service{service(nil), other, elsewhere, portless}, Exports: []*serviceExport{e}, Aliases: map[string][]*metav1.PartialObjectMetadata{
		GKEExportResource: {created("serve", 100), created("other", 300), created("gone", 0), created("elsewhere", 0)},
		KEPExportResource: {created("other", 200), created("portless", 0)},
	}}.local()
	if len(got.Exports) != 2 || got.Exports[0].Created != 200 || got.Exports[1].Created != 500 {
		t.Errorf("exports %+v", got.Exports)
	}
	status := map[string]string{}
	for _, s := range got.ExportStatus {
		status[s.Service.Name] = s.Alias
	}
	if want := map[string]string{"serve": "", "other": "ServiceExport.multicluster.k8s.io", "gone": "ServiceExport.net.gke.io",
		"elsewhere": "ServiceExport.net.gke.io", "portless": "ServiceExport.multicluster.k8s.io"}; !reflect.DeepEqual(status, want) {
		t.Errorf("status %+v", got.ExportStatus)
	}
	check(t, "aliases", got,
		"Service default/elsewhere: spec.type: a Service of type ExternalName cannot be exported; use another type, or delete the ServiceExport",
		"Service default/portless: spec.ports: the Service has no ports: not offered to other clusters; add at least one port",
		"ServiceExport.multicluster.k8s.io default/portless: no port of Service default/portless can be used: nothing is exported; change the Service, or delete the ServiceExport.multicluster.k8s.io",
		"ServiceExport.net.gke.io default/elsewhere: a Service of type ExternalName cannot be exported: nothing is exported; change the Service, or delete the ServiceExport.net.gke.io",
		"warning: ServiceExport.net.gke.io default/gone: there is no Service of this name: nothing is exported; create Service default/gone, or delete the ServiceExport")
}

func TestExportProperties(t *testing.T) {
	const s, x = "Service default/serve: ", "ServiceExport default/serve: "
	long := map[string]string{}
	for i := range 129 {
		long[fmt.Sprint("k", i)] = ""
	}
	for _, c := range []struct {
		what     string
		edit     func(*corev1.Service)
		spec     mcsv1beta1.ServiceExportSpec
		want     string // policy distribution families labels annotations
		omitted  string
		problems []string
	}{
		{what: "families of endpoints", want: `"" "" [IPv4] map[] map[]`},
		{what: "families of addresses", edit: func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "fd00::1", []string{"fd00::1", "10.96.0.1"}
		},
			want: `"" "" [IPv6 IPv4] map[] map[]`},
		{what: "families listed", edit: func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{"IPv6", "IPv4", "IPv6", "x"} },
			want: `"" "" [IPv6 IPv4] map[] map[]`, problems: []string{
				"warning: " + s + `spec.ipFamilies: "x" is not an IP family: not used; write IPv4 or IPv6`}},
		{what: "policies", edit: func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy, s.Spec.TrafficDistribution = ptr(corev1.ServiceInternalTrafficPolicyLocal), ptr("PreferClose")
		}, want: `"Local" "PreferClose" [IPv4] map[] map[]`},
		{what: "unknown policies", edit: func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy, s.Spec.TrafficDistribution = ptr(corev1.ServiceInternalTrafficPolicy("Zone")), ptr("PreferMoon")
		}, want: `"" "" [IPv4] map[] map[]`, problems: []string{
			s + `spec.internalTrafficPolicy: "Zone" is not a traffic policy: Cluster is used; write Cluster or Local`,
			"warning: " + s + `spec.trafficDistribution: "PreferMoon" is not known: not used; write PreferSameZone or PreferSameNode`}},
		{what: "only exported labels leave (E7)", edit: func(s *corev1.Service) {
			s.Labels, s.Annotations = map[string]string{"l": "1"}, map[string]string{"a": "1"}
		},
			spec: mcsv1beta1.ServiceExportSpec{ExportedLabels: map[string]string{"x.io/l": "2"}, ExportedAnnotations: map[string]string{"a": "any text"}},
			want: `"" "" [IPv4] map[x.io/l:2] map[a:any text]`},
		{what: "labels that an API server refuses", spec: mcsv1beta1.ServiceExportSpec{ExportedLabels: map[string]string{"a": "b c", "good": "1"}},
			want: `"" "" [IPv4] map[good:1] map[]`, omitted: `spec.exportedLabels["a"]`, problems: []string{"…"}},
		{what: "too many", spec: mcsv1beta1.ServiceExportSpec{ExportedAnnotations: long}, want: `"" "" [IPv4] map[] map[]`,
			omitted:  "spec.exportedAnnotations (129 entries exceed the limit of 128)",
			problems: []string{x + "spec.exportedAnnotations: 129 entries exceed the limit of 128: none is exported; export fewer or shorter ones"}},
		{what: "appProtocol", edit: func(s *corev1.Service) { s.Spec.Ports[0].AppProtocol = ptr("a b") }, want: `"" "" [IPv4] map[] map[]`,
			problems: []string{s + `spec.ports[0].appProtocol: "a b" is not an application protocol: left out; write a name such as http or kubernetes.io/h2c`}},
	} {
		e := export("default", "serve")
		e.Spec = c.spec
		got := typed{Services: []*corev1.Service{service(c.edit)}, Exports: []*serviceExport{e}, EndpointSlices: []*discoveryv1.EndpointSlice{endpointSlice(nil)}}.local()
		if len(c.problems) == 1 && c.problems[0] == "…" { // the end of its text is Kubernetes' own
			if len(got.Problems) != 1 || !strings.HasPrefix(got.Problems[0].String(), x+`spec.exportedLabels["a"]: is not valid: not exported; `) {
				t.Errorf("%s: problems %v", c.what, got.Problems)
			}
		} else {
			check(t, c.what, got, c.problems...)
		}
		if s := got.ExportStatus[0]; !s.Valid || !s.Exported || s.Omitted != c.omitted {
			t.Errorf("%s: status %+v", c.what, s)
		}
		g := got.Exports[0]
		if s := fmt.Sprintf("%q %q %v %v %v", g.InternalTrafficPolicy, g.TrafficDistribution, g.Families, g.Labels, g.Annotations); s != c.want {
			t.Errorf("%s: got %s, want %s", c.what, s, c.want)
		}
	}
}

// An export with a port that a ClusterSetIP cannot serve tells its owner so. A headless Service's
// clients call the pods themselves.
func TestExportNotBalanced(t *testing.T) {
	sctp := func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "s1", Protocol: corev1.ProtocolSCTP, Port: 3868})
		s.Spec.Ports[0].Name = "http"
	}
	for what, c := range map[string]struct {
		edit func(*corev1.Service)
		want string
	}{
		"ClusterSetIP": {sctp, "s1:3868/SCTP"},
		"headless":     {func(s *corev1.Service) { sctp(s); s.Spec.ClusterIP = "None"; s.Spec.ClusterIPs = nil }, ""},
		"TCP alone":    {func(*corev1.Service) {}, ""},
	} {
		got := typed{Services: []*corev1.Service{service(c.edit)}, Exports: []*serviceExport{export("default", "serve")}}.local()
		if len(got.ExportStatus) != 1 || !got.ExportStatus[0].Exported || got.ExportStatus[0].NotBalanced != c.want {
			t.Errorf("%s: status %+v, want not balanced %q", what, got.ExportStatus, c.want)
		}
	}
}

// Families are declared by what the Service itself says, and not by its endpoints, which come and go.
func TestFamiliesDeclared(t *testing.T) {
	for what, c := range map[string]struct {
		edit     func(*corev1.Service)
		declared bool
	}{
		"listed":                 {func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{"IPv4"} }, true},
		"those of its addresses": {func(s *corev1.Service) { s.Spec.ClusterIP = "10.96.0.1" }, true},
		"none listed":            {nil, false},
		"none listed, headless":  {func(s *corev1.Service) { s.Spec.ClusterIP = "None" }, false},
		"a misspelt one":         {func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{"ipv4"} }, false},
	} {
		for _, slices := range [][]*discoveryv1.EndpointSlice{nil, {endpointSlice(nil)}} {
			got := typed{Services: []*corev1.Service{service(c.edit)}, Exports: []*serviceExport{export("default", "serve")}, EndpointSlices: slices}.local()
			if e := got.Exports[0]; e.FamiliesDeclared != c.declared {
				t.Errorf("%s, %d EndpointSlices: declared is %t, families %v", what, len(slices), e.FamiliesDeclared, e.Families)
			}
		}
	}
}

func TestNamespaces(t *testing.T) {
	namespace := func(name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: meta("", name)}
	}
	some := []*metav1.PartialObjectMetadata{namespace("b"), namespace("a"), namespace("b")}
	if got := (typed{}).local().Namespaces; got != nil {
		t.Errorf("unknown namespaces became %v", got)
	}
	if got := (typed{Namespaces: some[:0]}).local().Namespaces; got == nil {
		t.Error("no namespaces became unknown ones")
	}
	if got := (typed{Namespaces: some}).local().Namespaces; !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Errorf("namespaces %v", got)
	}
	objs := Objects{}
	insert(&objs, NamespaceResource, some)
	if got := Local(objs).Namespaces; got != nil {
		t.Errorf("of namespaces of which there may be more, all that are known became %v", got)
	}
}
