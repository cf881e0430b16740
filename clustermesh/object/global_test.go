package object

import (
	"net/netip"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
)

// notes makes a Service with a ClusterIP and annotations.
func notes(kv ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.UID, s.Spec.IPFamilies = "u1", []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.5", []string{"10.96.0.5", "fd00:96::5"}
		s.Annotations = map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			s.Annotations[kv[i]] = kv[i+1]
		}
	}
}

// Annotations of global services: strait's, Cilium's and Cilium's old ones.
func TestGlobals(t *testing.T) {
	base := clustermesh.Global{Service: clustermesh.ServiceName{Namespace: "default", Name: "serve"},
		Ports: []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80}},
		IPs:   []netip.Addr{netip.MustParseAddr("10.96.0.5"), netip.MustParseAddr("fd00:96::5")}, Shared: true}
	with := func(edit func(*clustermesh.Global)) *clustermesh.Global { g := base; edit(&g); return &g }
	cilium := with(func(g *clustermesh.Global) { g.Affinity = clustermesh.AffinityNone })
	both := func(a, b func(*corev1.Service)) func(*corev1.Service) {
		return func(s *corev1.Service) { a(s); b(s) }
	}
	asked := &clustermesh.GlobalSlices{UID: "u1", Families: []clustermesh.Family{clustermesh.IPv4, clustermesh.IPv6}}
	const s = "Service default/serve: "
	for _, c := range []struct {
		what     string
		edit     func(*corev1.Service)
		want     *clustermesh.Global
		problems []string
	}{
		{what: "none", edit: notes()},
		{what: "strait", edit: notes("service.strait.io/global", "true"), want: &base},
		{what: "strait, everything", edit: both(notes("service.strait.io/global", "true", "service.strait.io/shared", "false", "service.strait.io/affinity", "remote"),
			func(s *corev1.Service) {
				s.Spec.SessionAffinity, s.Spec.TrafficDistribution = "ClientIP", ptr("PreferSameZone")
				s.Spec.InternalTrafficPolicy = ptr(corev1.ServiceInternalTrafficPolicyLocal)
			}),
			want: with(func(g *clustermesh.Global) {
				g.Shared, g.Affinity, g.AffinitySeconds = false, clustermesh.AffinityRemote, 10800
				g.InternalTrafficPolicy, g.TrafficDistribution = "Local", "PreferSameZone"
			})},
		{what: "not global", edit: notes("service.strait.io/global", "false", "service.strait.io/affinity", "remote")},
		{what: "cilium's default affinity is none", edit: notes("service.cilium.io/global", "true"), want: cilium},
		{what: "cilium, capitals", edit: notes("service.cilium.io/global", "TRUE", "service.cilium.io/affinity", "Local", "service.cilium.io/shared", "False"),
			want: with(func(g *clustermesh.Global) { g.Shared, g.Affinity = false, clustermesh.AffinityLocal })},
		{what: "cilium, old names", edit: notes("io.cilium/global-service", "true", "io.cilium/shared-service", "false", "io.cilium/service-affinity", "remote"),
			want: with(func(g *clustermesh.Global) { g.Shared, g.Affinity = false, clustermesh.AffinityRemote })},
		{what: "cilium, literal none and empty", edit: notes("service.cilium.io/global", "true", "service.cilium.io/affinity", ""), want: cilium},
		{what: "strait's names for cilium's service", edit: notes("io.cilium/global-service", "true", "service.strait.io/affinity", "local"),
			want: with(func(g *clustermesh.Global) { g.Affinity = clustermesh.AffinityLocal })},
		{what: "the new name counts", edit: notes("service.cilium.io/global", "true", "io.cilium/global-service", "false"), want: cilium,
			problems: []string{"warning: " + s + `metadata.annotations[io.cilium/global-service]: "false" contradicts service.cilium.io/global="true", which is used; delete one of the two annotations`}},
		{what: "strait's name counts", edit: notes("service.strait.io/global", "false", "service.cilium.io/global", "true"),
			problems: []string{"warning: " + s + `metadata.annotations[service.cilium.io/global]: "true" contradicts service.strait.io/global="false", which is used; delete one of the two annotations`}},
		{what: "unknown global", edit: notes("service.cilium.io/global", "yes"),
			problems: []string{s + `metadata.annotations[service.cilium.io/global]: "yes" is neither true nor false: counts as false; write "true" or "false"`}},
		{what: "unknown shared", edit: notes("service.strait.io/global", "true", "service.strait.io/shared", "1"),
			want:     with(func(g *clustermesh.Global) { g.Shared = false }),
			problems: []string{s + `metadata.annotations[service.strait.io/shared]: "1" is neither true nor false: counts as false; write "true" or "false"`}},
		{what: "unknown affinity", edit: notes("service.cilium.io/global", "true", "service.cilium.io/affinity", "near"), want: cilium,
			problems: []string{s + `metadata.annotations[service.cilium.io/affinity]: "near" is none of local, remote, none: not used; write one of them, or delete the annotation`}},
		{what: "slices are asked for", edit: notes("service.cilium.io/global", "true", "service.cilium.io/global-sync-endpoint-slices", "True"), want: with(func(g *clustermesh.Global) {
			g.Affinity, g.Slices = clustermesh.AffinityNone, asked
		})},
		{what: "slices, strait's name", edit: notes("service.strait.io/global", "true", "service.strait.io/global-sync-endpoint-slices", "true"),
			want: with(func(g *clustermesh.Global) { g.Slices = asked })},
		{what: "slices without global", edit: notes("service.cilium.io/global-sync-endpoint-slices", "true"),
			problems: []string{"warning: " + s + `metadata.annotations[service.cilium.io/global-sync-endpoint-slices]: has no effect on a Service that is not global; add service.strait.io/global: "true", or delete the annotation`}},
		{what: "no slices are asked for", edit: notes("service.cilium.io/global", "true", "service.cilium.io/global-sync-endpoint-slices", "false"), want: cilium},
		{what: "slices, no boolean", edit: notes("service.cilium.io/global", "true", "service.cilium.io/global-sync-endpoint-slices", "on"), want: cilium,
			problems: []string{s + `metadata.annotations[service.cilium.io/global-sync-endpoint-slices]: "on" is neither true nor false: counts as false; write "true" or "false"`}},
		{what: "shared without global", edit: notes("service.cilium.io/shared", "true"),
			problems: []string{"warning: " + s + `metadata.annotations[service.cilium.io/shared]: has no effect on a Service that is not global; add service.strait.io/global: "true", or delete the annotation`}},
		{what: "headless", edit: both(notes("service.strait.io/global", "true"), func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "None", []string{"None"} }),
			want: with(func(g *clustermesh.Global) { g.IPs, g.Slices = nil, asked })},
		{what: "headless, no slices", edit: both(notes("service.strait.io/global", "true", "service.cilium.io/global-sync-endpoint-slices", "false"),
			func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "None", []string{"None"} }),
			want: with(func(g *clustermesh.Global) { g.IPs = nil })},
		{what: "ExternalName", edit: both(notes("service.strait.io/global", "true"), func(s *corev1.Service) { s.Spec.Type = "ExternalName" }),
			problems: []string{s + "spec.type: a Service of type ExternalName cannot be global; use another type, or delete the annotation service.strait.io/global"}},
		{what: "bad address", edit: both(notes("service.strait.io/global", "true"), func(s *corev1.Service) { s.Spec.ClusterIPs[1] = "127.0.0.1" }),
			want:     with(func(g *clustermesh.Global) { g.IPs = base.IPs[:1] }),
			problems: []string{s + "spec.clusterIPs[1]: 127.0.0.1 cannot be reached from other machines: not used; write an address such as 10.96.0.10"}},
	} {
		got := typed{Services: []*corev1.Service{service(c.edit)}, EndpointSlices: []*discoveryv1.EndpointSlice{endpointSlice(nil)}}.local()
		check(t, c.what, got, c.problems...)
		want, endpoints := []clustermesh.Global(nil), 0
		if c.want != nil {
			want, endpoints = []clustermesh.Global{*c.want}, 1
		}
		if !reflect.DeepEqual(got.Globals, want) {
			t.Errorf("%s: got %+v, want %+v", c.what, got.Globals, want)
		}
		if len(got.Endpoints) != endpoints || len(got.Exports) != 0 {
			t.Errorf("%s: %d endpoints, want %d; exports %v", c.what, len(got.Endpoints), endpoints, got.Exports)
		}
	}
}

// Cilium marks the Services that it derives from ServiceImports as global, and Linkerd copies the
// annotations of what it mirrors. These Services are theirs: if strait served their addresses, it
// would do so without endpoints, since the slices are of another cluster. Nor can they be exported.
func TestGlobals_OfOtherSystems(t *testing.T) {
	for what, labels := range map[string]map[string]string{
		"Cilium":        {"multicluster.kubernetes.io/service-name": "serve", "multicluster.kubernetes.io/source-cluster": "c1"},
		"AWS Cloud Map": {"multicluster.kubernetes.io/source-cluster": "c1"},
		"Linkerd":       {"mirror.linkerd.io/mirrored-service": "true", "mirror.linkerd.io/cluster-name": "c2"},
		"no labels":     nil,
	} {
		s, e := service(notes("service.cilium.io/global", "true", "service.cilium.io/affinity", "near")), endpointSlice(nil)
		if s.Labels = labels; labels == nil {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ServiceImport", Name: "serve", UID: "u2"}}
		}
		for k, v := range labels { // the controller of EndpointSlices copies them
			e.Labels[k] = v
		}
		check(t, what, typed{Services: []*corev1.Service{s}, EndpointSlices: []*discoveryv1.EndpointSlice{e}}.local())
		got := typed{Services: []*corev1.Service{s}, EndpointSlices: []*discoveryv1.EndpointSlice{e}, Exports: []*mcsv1beta1.ServiceExport{export("default", "serve")}}.local()
		if len(got.Globals)+len(got.Exports)+len(got.Endpoints) > 0 {
			t.Errorf("%s: global %v, exports %v, endpoints %v", what, got.Globals, got.Exports, got.Endpoints)
		}
		if len(got.ExportStatus) != 1 || got.ExportStatus[0].Valid || got.ExportStatus[0].Reason != "InvalidServiceType" {
			t.Errorf("%s: status %+v", what, got.ExportStatus)
		}
	}
}

// A directory of YAML has no API server that EndpointSlices could be written into, and says so
// whether they are asked for or are what a headless Service needs.
func TestGlobals_SlicesOfFiles(t *testing.T) {
	const try = "a cluster without an API server gets no EndpointSlices with other clusters' endpoints; its own are still shared; export the Service with a ServiceExport, and use its name under clusterset.local"
	headless := func(s *corev1.Service) {
		notes("service.strait.io/global", "true")(s)
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "None", []string{"None"}
	}
	for field, edit := range map[string]func(*corev1.Service){
		"spec.clusterIP": headless,
		"metadata.annotations[service.strait.io/global-sync-endpoint-slices]": notes("service.strait.io/global", "true", "service.strait.io/global-sync-endpoint-slices", "true"),
	} {
		objs := typed{Services: []*corev1.Service{service(edit)}}
		objs.Config.ReadOnly = true
		got := objs.local()
		check(t, field, got, "warning: Service default/serve: "+field+": "+try)
		if len(got.Globals) != 1 || got.Globals[0].Slices != nil || !got.Globals[0].Shared {
			t.Errorf("%s: global services %+v, want one that is shared and has no slices", field, got.Globals)
		}
	}
}

// Derived Services say which addresses imports have; they and their slices are never the cluster's
// own.
func TestDerivedServices(t *testing.T) {
	derivedService := func(name, of string, ips ...string) *corev1.Service {
		return service(func(s *corev1.Service) {
			notes("service.strait.io/global", "true")(s)
			s.Name, s.Spec.ClusterIP, s.Spec.ClusterIPs = name, "", ips
			s.Labels = map[string]string{LabelManagedBy: ManagedBy, LabelServiceImport: of}
		})
	}
	foreign := derivedService("derived-other", "other", "10.96.0.9")
	foreign.Labels[LabelManagedBy] = "helm"
	foreign.Annotations = nil
	slice := endpointSlice(func(s *discoveryv1.EndpointSlice) {
		s.Labels[discoveryv1.LabelManagedBy] = SliceManager
		s.Endpoints[0].Addresses = []string{"10.1.1.99"}
	})
	twice := endpointSlice(func(s *discoveryv1.EndpointSlice) { s.Name = "serve-2" })
	barred := derivedService("derived-x", "x", "10.96.0.8")
	barred.Namespace = "kube-system"
	got := typed{
		Services: []*corev1.Service{derivedService("derived-serve", "serve", "fd00:96::7", "10.96.0.7"), derivedService("derived-serve-2", "serve", "10.96.0.6"),
			derivedService("derived-later", "later"), service(notes("service.strait.io/global", "true")), foreign, barred},
		Exports:        []*serviceExport{export("default", "serve"), export("default", "derived-serve")},
		EndpointSlices: []*discoveryv1.EndpointSlice{slice, twice},
	}.local()
	serve := clustermesh.ServiceName{Namespace: "default", Name: "serve"}
	want := []clustermesh.Allocation{{Service: serve, IP: netip.MustParseAddr("fd00:96::7")}, {Service: serve, IP: netip.MustParseAddr("10.96.0.7")}}
	if !reflect.DeepEqual(got.Allocations, want) {
		t.Errorf("allocations %v, want %v", got.Allocations, want)
	}
	if len(got.Exports) != 1 || got.Exports[0].Service != serve || len(got.Globals) != 1 || got.Globals[0].Service != serve {
		t.Errorf("exports %v, globals %v: want only default/serve", got.Exports, got.Globals)
	}
	if len(got.Endpoints) != 1 || got.Endpoints[0].Addr.String() != "10.1.1.10" {
		t.Errorf("endpoints %v: a slice of strait's own was read back", got.Endpoints)
	}
	if s := got.ExportStatus[0]; s.Service.Name != "derived-serve" || s.Valid || s.Reason != "InvalidServiceType" {
		t.Errorf("export of a derived Service: %+v", s)
	}
}
