package mcs

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/l4"
)

// The tests are named after the rules of the MCS API (KEP-1645): E for exports, I for imports.

func TestE1_NothingWithoutExport(t *testing.T) {
	w := newWorld(t)
	if ops := w.settle(viewOf(), serve); len(ops) != 0 {
		t.Errorf("without an export: %v", ops)
	}
}

func TestE5_InvalidExportSaysSoAndIsNotImported(t *testing.T) {
	w := newWorld(t)
	w.export(serve)
	v := viewOf()
	v = v.judge(clustermesh.ExportStatus{Service: serve, Reason: "InvalidServiceType", Message: "a Service of type ExternalName cannot be exported"})
	w.settle(v, serve)
	cs := w.exports["default/serve"].Status.Conditions
	if c := condition(cs, "Valid"); c.Status != metav1.ConditionFalse || c.Reason != "InvalidServiceType" || !strings.Contains(c.Message, "ExternalName") {
		t.Errorf("Valid: %+v", c)
	}
	if c := condition(cs, "Ready"); c.Status != metav1.ConditionFalse || c.Reason != "Failed" {
		t.Errorf("Ready: %+v", c)
	}
	if c := condition(cs, "Conflict"); c.Type != "" {
		t.Errorf("Conflict is there: %+v", c)
	}
	if len(w.imports) != 0 {
		t.Errorf("imported: %v", w.imports)
	}
}

func TestE7_OnlyExportedLabelsAndAnnotationsArrive(t *testing.T) {
	w := newWorld(t)
	labelled := func(labels, annotations map[string]string) View {
		return viewOf(exportOf("c1", 1)).change(func(i *Import) { i.Labels, i.Annotations = labels, annotations })
	}
	w.settle(labelled(map[string]string{"team": "a", "app.kubernetes.io/managed-by": "helm", "strait.io/x": "y"}, map[string]string{"note": "n", "old": "o"}), serve)
	i := w.imports["default/serve"]
	if want := map[string]string{"team": "a", "app.kubernetes.io/managed-by": "strait"}; !reflect.DeepEqual(i.Labels, want) {
		t.Errorf("labels %v, want %v", i.Labels, want)
	}
	if want := map[string]string{"note": "n", "old": "o", DerivedAnnotation: "derived-serve"}; !reflect.DeepEqual(i.Annotations, want) {
		t.Errorf("annotations %v, want %v", i.Annotations, want)
	}
	// Another writer's label stays and does not make us write.
	i.Labels["theirs"] = "1"
	if ops := w.settle(labelled(map[string]string{"team": "a"}, map[string]string{"note": "n"}), serve); len(ops) == 0 {
		t.Error("an annotation that is not exported any more was not removed")
	}
	if ops := w.settle(labelled(map[string]string{"team": "a"}, map[string]string{"note": "n"}), serve); len(ops) != 0 {
		t.Errorf("not settled: %v", ops)
	}
}

func TestE8_UnexportRemovesThatClustersSlices(t *testing.T) {
	w := newWorld(t)
	both := viewOf(exportOf("c1", 1), exportOf("c2", 2)).change(pod("c1", "10.1.0.1", 8080)).change(pod("c2", "10.2.0.1", 8080))
	w.settle(both, serve)
	if got := sources(w); !slices.Equal(got, []string{"c1", "c2"}) {
		t.Fatalf("slices of %v", got)
	}
	w.settle(viewOf(exportOf("c1", 1)).change(pod("c1", "10.1.0.1", 8080)), serve)
	if got := sources(w); !slices.Equal(got, []string{"c1"}) {
		t.Errorf("after c2 unexported: slices of %v", got)
	}
	if got := w.imports["default/serve"].Status.Clusters; len(got) != 1 || got[0].Cluster != "c1" {
		t.Errorf("status.clusters %v", got)
	}
}

func TestE9_BarredNamespaceIsNeitherExportedNorImported(t *testing.T) {
	w := newWorld(t)
	v := viewOf(exportOf("c2", 1)).change(pod("c2", "10.2.0.1", 80))
	w.settle(v, serve)
	v.Clusters["c2"] = Held
	v.Config.Barred = clustermesh.Barred{"def*"}
	w.settle(v, serve)
	if len(w.imports)+len(w.services)+len(w.slices) != 0 {
		t.Errorf("left in a barred namespace: %v %v %v", w.imports, w.services, w.slices)
	}
	w.export(serve)
	v = v.judge(clustermesh.ExportStatus{Service: serve, Valid: true, Reason: "Failed", Message: "namespace default is barred"})
	w.settle(v, serve)
	cs := w.exports["default/serve"].Status.Conditions
	if c := condition(cs, "Ready"); c.Status != metav1.ConditionFalse || c.Reason != "Failed" || !strings.Contains(c.Message, "barred") {
		t.Errorf("Ready: %+v", c)
	}
	if c := condition(cs, "Valid"); c.Status != metav1.ConditionTrue || c.Reason != "Valid" {
		t.Errorf("Valid: %+v", c)
	}
}

func TestI1_ImportWhereTheNamespaceExists(t *testing.T) {
	w := newWorld(t)
	v := viewOf(exportOf("c2", 1))
	v.Namespaces = map[string]bool{"other": true}
	if ops := w.settle(v, serve); len(ops) != 0 {
		t.Fatalf("without the namespace: %v", ops)
	}
	v.Namespaces = map[string]bool{"default": true}
	w.settle(v, serve)
	if w.imports["default/serve"] == nil {
		t.Error("no import when the namespace came")
	}
}

func TestI1_SpecOfTheImport(t *testing.T) {
	w := newWorld(t)
	grpc := clustermesh.ServicePort{Name: "grpc", Proto: l4.UDP, Port: 90, AppProtocol: "kubernetes.io/h2c"}
	w.settle(viewOf(exportOf("c1", 1, func(e *clustermesh.Export) { e.Ports = append(e.Ports, grpc); e.AffinitySeconds = 10 })).
		change(func(i *Import) {
			i.InternalTrafficPolicy, i.TrafficDistribution, i.Families = "Local", "PreferClose", []clustermesh.Family{clustermesh.IPv4}
		}), serve)
	got := w.imports["default/serve"].Spec
	h2c, close, local, ten := "kubernetes.io/h2c", "PreferClose", corev1.ServiceInternalTrafficPolicyLocal, int32(10)
	want := mcsv1beta1.ServiceImportSpec{
		Type: mcsv1beta1.ClusterSetIP,
		Ports: []mcsv1beta1.ServicePort{
			{Name: "http", Protocol: "TCP", Port: 80}, {Name: "grpc", Protocol: "UDP", Port: 90, AppProtocol: &h2c},
		},
		IPs: got.IPs, IPFamilies: []corev1.IPFamily{"IPv4"},
		SessionAffinity:       "ClientIP",
		SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &ten}},
		InternalTrafficPolicy: &local, TrafficDistribution: &close,
	}
	if !reflect.DeepEqual(got, want) || len(got.IPs) != 1 {
		t.Errorf("spec\n%+v, want\n%+v", got, want)
	}
	s := w.services["default/derived-serve"]
	if s.Spec.ClusterIPs[0] != got.IPs[0] || s.Spec.SessionAffinity != "ClientIP" || *s.Spec.InternalTrafficPolicy != local ||
		*s.Spec.TrafficDistribution != close || s.Spec.Selector != nil || s.Spec.Type != "ClusterIP" || s.OwnerReferences[0].UID != w.imports["default/serve"].UID {
		t.Errorf("derived Service: %+v", s)
	}
}

func TestI1_HeadlessHasFamiliesAndNoIPs(t *testing.T) {
	w := newWorld(t)
	w.settle(viewOf(exportOf("c1", 1, func(e *clustermesh.Export) { e.Type, e.Ports = clustermesh.Headless, nil })), serve)
	i := w.imports["default/serve"]
	if len(i.Spec.IPs) != 0 || len(i.Spec.IPFamilies) != 1 || i.Spec.Ports == nil || i.Spec.Type != "Headless" || i.Spec.SessionAffinity != "" {
		t.Errorf("headless import: %+v", i.Spec)
	}
	if len(w.services) != 0 || condition(i.Status.Conditions, "Ready").Status != metav1.ConditionTrue {
		t.Errorf("services %v, status %+v", w.services, i.Status)
	}
}

func TestI4_ImportLivesWhileAnyExportDoes(t *testing.T) {
	w := newWorld(t)
	w.settle(viewOf(exportOf("c1", 1), exportOf("c2", 2)), serve)
	uid, ips := w.imports["default/serve"].UID, w.imports["default/serve"].Spec.IPs
	w.settle(viewOf(exportOf("c2", 2)), serve)
	if i := w.imports["default/serve"]; i.UID != uid || !slices.Equal(i.Spec.IPs, ips) {
		t.Errorf("the import was made again or lost its address: %v %v", i.UID, i.Spec.IPs)
	}
	ops := w.settle(viewOf(), serve)
	if len(w.imports)+len(w.services)+len(w.slices) != 0 {
		t.Errorf("left after the last unexport: %v %v %v", w.imports, w.services, w.slices)
	}
	if last := ops[len(ops)-1]; last.Kind != "ServiceImport" {
		t.Errorf("the import must go last, not %v", ops)
	}
}

func TestI5_FamilyNotSupportedIsACondition(t *testing.T) {
	w := newWorld(t)
	w.trouble.FamilyNotSupported = true
	w.imports["default/serve"] = nil
	delete(w.imports, "default/serve")
	v := viewOf(exportOf("c2", 1)).change(func(i *Import) { i.Families = []clustermesh.Family{clustermesh.IPv6} })
	for range 3 { // it does not settle: the Service is tried again
		ops, _ := Diff(v, serve, w.have(serve), start)
		for _, o := range ops {
			w.apply(o)
		}
	}
	c := condition(w.imports["default/serve"].Status.Conditions, "Ready")
	if c.Status != metav1.ConditionFalse || c.Reason != "IPFamilyNotSupported" || !strings.Contains(c.Message, "IPv6") {
		t.Errorf("Ready: %+v", c)
	}
}

func TestIPs_OneForEachFamilyInOneOrder(t *testing.T) {
	w := newWorld(t)
	w.families = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
	dual := []clustermesh.Family{clustermesh.IPv4, clustermesh.IPv6}
	w.settle(viewOf(exportOf("c1", 1)).change(func(i *Import) { i.Families = dual }), serve)
	got := w.imports["default/serve"].Spec
	if len(got.IPs) != 2 || !strings.HasPrefix(got.IPs[0], "fd96") || !slices.Equal(got.IPFamilies, w.families) {
		t.Errorf("ips %v of families %v", got.IPs, got.IPFamilies)
	}
	// A family is never lost while the import lives.
	w.settle(viewOf(exportOf("c1", 1)).change(func(i *Import) { i.Families = dual[:1] }), serve)
	if now := w.imports["default/serve"].Spec; !slices.Equal(now.IPs, got.IPs) {
		t.Errorf("ips %v, were %v", now.IPs, got.IPs)
	}
	cidr := viewOf(exportOf("c1", 1)).change(func(i *Import) {
		i.Families = dual
		i.IPs = []netip.Addr{netip.MustParseAddr("fd00::1"), netip.MustParseAddr("241.0.0.1"), netip.MustParseAddr("241.0.0.2")}
	})
	cidr.Config.ClusterSetIPs = IPsCIDR
	w.settle(cidr, serve)
	if now := w.imports["default/serve"].Spec; !slices.Equal(now.IPs, []string{"241.0.0.1", "fd00::1"}) || len(w.services) != 0 {
		t.Errorf("by CIDR: ips %v, services %v", now.IPs, w.services)
	}
}

func TestConflict_OnAllExportsWithReasonsAndClusters(t *testing.T) {
	w := newWorld(t)
	w.export(serve)
	v := viewOf(exportOf("c1", 1)).change(func(i *Import) {
		i.Exporters = []clustermesh.ClusterName{"c1", "c2"}
		i.Conflicts = []clustermesh.Conflict{
			{Reason: "TypeConflict", Field: "type", Winner: "c1", Losers: []clustermesh.ClusterName{"c2", "c3"}, Total: 5},
			{Reason: "PortConflict", Field: "ports[http:80/TCP]", Winner: "c1", Losers: []clustermesh.ClusterName{"c2"}, Total: 5},
			{Reason: "PortConflict", Field: "ports", Winner: "c1", Losers: []clustermesh.ClusterName{"c2"}, Total: 5},
		}
	})
	ops := w.settle(v, serve)
	c := condition(w.exports["default/serve"].Status.Conditions, "Conflict")
	if c.Status != metav1.ConditionTrue || c.Reason != "TypeConflict,PortConflict" {
		t.Errorf("Conflict: %+v", c)
	}
	if want := `Conflicting type. Using "ClusterSetIP" from oldest service export in "c1". 2/5 clusters disagree (c2, c3).`; !strings.HasPrefix(c.Message, want) {
		t.Errorf("message %q, want %q", c.Message, want)
	}
	if n := events(ops, "TypeConflict"); n != 1 {
		t.Errorf("%d events of the conflict, want 1", n)
	}
	for _, want := range []string{
		"Conflicting ports. Using all ports", `Conflicting ports[http:80/TCP]. Using those from oldest service export in "c1".`,
	} {
		if !strings.Contains(c.Message, want) {
			t.Errorf("message %q, want %q in it", c.Message, want)
		}
	}
	ops = w.settle(viewOf(exportOf("c1", 1)), serve)
	now := condition(w.exports["default/serve"].Status.Conditions, "Conflict")
	if now.Status != metav1.ConditionFalse || now.Reason != "NoConflicts" || !now.LastTransitionTime.After(c.LastTransitionTime.Time) {
		t.Errorf("after the conflict: %+v", now)
	}
	if n := events(ops, "NoConflicts"); n != 1 {
		t.Errorf("%d events of the conflict's end, want 1", n)
	}
}

func TestConditions_TimeMovesWithTheStatusOnly(t *testing.T) {
	w := newWorld(t)
	w.export(serve)
	v := viewOf(exportOf("c1", 1))
	w.settle(v, serve)
	before := condition(w.exports["default/serve"].Status.Conditions, "Valid")
	w.exports["default/serve"].Generation = 7
	w.settle(v, serve)
	after := condition(w.exports["default/serve"].Status.Conditions, "Valid")
	if after.ObservedGeneration != 7 || after.LastTransitionTime != before.LastTransitionTime {
		t.Errorf("%+v, was %+v", after, before)
	}
}

func TestStatus_ReadyExportedAndSlicesPresent(t *testing.T) {
	w := newWorld(t)
	w.export(serve)
	v := viewOf(exportOf("c1", 1), exportOf("c2", 2))
	pendingView := viewOf(exportOf("c2", 2))
	pendingView.Exports = v.Exports
	w.settle(pendingView, serve)
	if c := condition(w.exports["default/serve"].Status.Conditions, "Ready"); c.Reason != "Pending" || c.Status != metav1.ConditionFalse {
		t.Errorf("before the record was in force: %+v", c)
	}
	ops := w.settle(v, serve)
	if c := condition(w.exports["default/serve"].Status.Conditions, "Ready"); c.Reason != "Exported" || c.Status != metav1.ConditionTrue {
		t.Errorf("Ready: %+v", c)
	}
	if events(ops, "Exported") != 1 {
		t.Errorf("no event Exported in %v", ops)
	}
	st := w.imports["default/serve"].Status
	if st.EndpointSliceObjects != "Present" || len(st.Clusters) != 2 || condition(st.Conditions, "Ready").Reason != "Ready" {
		t.Errorf("status %+v", st)
	}
	for mode, want := range map[SliceMode]mcsv1beta1.EndpointSliceObjectsStatus{SlicesHeadless: "Absent", SlicesNone: "Absent", SlicesAll: "Present"} {
		v.Config.ImportSlices = mode
		w.settle(v, serve)
		if got := w.imports["default/serve"].Status.EndpointSliceObjects; got != want {
			t.Errorf("importSlices %s: %s", mode, got)
		}
	}
}

func TestSlices_LabelsOfTheTwoSets(t *testing.T) {
	w := newWorld(t)
	w.families = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	dual := func(i *Import) { i.Families = []clustermesh.Family{clustermesh.IPv4, clustermesh.IPv6} }
	w.settle(viewOf(exportOf("c1", 1), exportOf("c2", 2)).change(dual).
		change(pod("c1", "10.1.0.1", 8080)).change(pod("c2", "10.2.0.1", 8080)).change(pod("c2", "fd02::1", 8080)), serve)
	seen := map[string]int{}
	for _, s := range w.slices {
		_, byMCS := s.Labels[mcsv1beta1.LabelServiceName]
		service, byCore := s.Labels[discoveryv1.LabelServiceName]
		if byMCS == byCore {
			t.Errorf("%s has both service labels or none: %v", s.Name, s.Labels)
		}
		if s.Labels[discoveryv1.LabelManagedBy] != "strait.io" || s.OwnerReferences[0].Kind != "ServiceImport" {
			t.Errorf("%s: %+v", s.Name, s.ObjectMeta)
		}
		if byCore && service != "derived-serve" {
			t.Errorf("%s is of Service %s", s.Name, service)
		}
		for _, e := range s.Endpoints {
			addr := netip.MustParseAddr(e.Addresses[0])
			if string(s.AddressType) != string(clustermesh.FamilyOf(addr)) {
				t.Errorf("%s of %s has %s", s.Name, s.AddressType, addr)
			}
			if (e.NodeName != nil) != (addr == netip.MustParseAddr("10.1.0.1")) {
				t.Errorf("%s: nodeName %v: only the own cluster's nodes are named", addr, e.NodeName)
			}
		}
		seen[fmt.Sprintf("%t %s %s", byMCS, s.Labels[mcsv1beta1.LabelSourceCluster], s.AddressType)] = len(s.Endpoints)
	}
	want := map[string]int{"true c1 IPv4": 1, "true c2 IPv4": 1, "true c2 IPv6": 1, "false c1 IPv4": 1, "false c2 IPv4": 1, "false c2 IPv6": 1}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("endpoints by slice %v, want %v", seen, want)
	}
}

// kube-proxy prefers by hints alone, and by those of a kind only if all endpoints have them.
func TestSlices_HintsOfTheDerivedService(t *testing.T) {
	for distribution, want := range map[string]map[string]string{
		"":               {"10.1.0.1": "", "10.1.0.2": "", "10.2.0.1": ""},
		"PreferClose":    {"10.1.0.1": "zone z1", "10.1.0.2": "zone z1", "10.2.0.1": "zone z1"},
		"PreferSameZone": {"10.1.0.1": "zone z1", "10.1.0.2": "zone z1", "10.2.0.1": "zone z1"},
		// The other cluster's node n1 is not ours of that name.
		"PreferSameNode": {"10.1.0.1": "zone z1 node n1", "10.1.0.2": "zone z1 node c1.clusterset.invalid", "10.2.0.1": "zone z1 node c2.clusterset.invalid"},
	} {
		w := newWorld(t)
		w.settle(viewOf(exportOf("c1", 1), exportOf("c2", 2)).
			change(pod("c1", "10.1.0.1", 80)).change(pod("c1", "10.1.0.2", 80)).change(pod("c2", "10.2.0.1", 80)).
			change(func(i *Import) { i.TrafficDistribution, i.Backends[1].Node = distribution, "" }), serve)
		got := map[string]string{}
		for _, s := range w.slices {
			for _, e := range s.Endpoints {
				if s.Labels[discoveryv1.LabelServiceName] == "" {
					if e.Hints != nil {
						t.Errorf("%s: hints in a slice of the import: %+v", distribution, e.Hints)
					}
					continue
				}
				var hints []string
				if e.Hints != nil {
					for _, z := range e.Hints.ForZones {
						hints = append(hints, "zone "+z.Name)
					}
					for _, n := range e.Hints.ForNodes {
						hints = append(hints, "node "+n.Name)
					}
				}
				got[e.Addresses[0]] = strings.Join(hints, " ")
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: hints %v, want %v", distribution, got, want)
		}
	}
}

// No address of an IPv4 Service leads to IPv6 endpoints.
func TestSlices_DerivedHaveTheFamiliesOfTheService(t *testing.T) {
	w := newWorld(t)
	w.settle(viewOf(exportOf("c1", 1)).change(pod("c1", "10.1.0.1", 8080)).change(pod("c1", "fd01::1", 8080)), serve)
	var derived, imported []string
	for _, s := range w.slices {
		if _, ok := s.Labels[discoveryv1.LabelServiceName]; ok {
			derived = append(derived, string(s.AddressType))
		} else {
			imported = append(imported, string(s.AddressType))
		}
	}
	if !slices.Equal(derived, []string{"IPv4"}) || len(imported) != 2 {
		t.Errorf("derived %v, import's %v", derived, imported)
	}
}

func TestSlices_PortsReachOnlyWhoHasThem(t *testing.T) {
	w := newWorld(t)
	more := clustermesh.ServicePort{Proto: l4.TCP, Port: 81}
	v := viewOf(exportOf("c1", 1, func(e *clustermesh.Export) { e.Ports = []clustermesh.ServicePort{http, more} })).
		change(pod("c1", "10.1.0.1", 8080)).change(pod("c2", "10.2.0.1", 8080)).
		change(func(i *Import) {
			i.Backends = append(i.Backends, Backend{Port: more, Addr: netip.MustParseAddrPort("10.1.0.1:8081"), Cluster: "c1", Node: "n1", Zone: "z1", Ready: true, Serving: true})
		})
	w.settle(v, serve)
	if ports := w.services["default/derived-serve"].Spec.Ports; ports[1].Name != "port-81-tcp" {
		t.Errorf("the unnamed port of two: %+v", ports)
	}
	got := map[string]string{}
	for _, s := range w.slices {
		if s.Labels[discoveryv1.LabelServiceName] != "" {
			for _, p := range s.Ports {
				got[s.Endpoints[0].Addresses[0]] += fmt.Sprintf(" %s:%d", *p.Name, *p.Port)
			}
		}
	}
	if got["10.1.0.1"] != " http:8080 port-81-tcp:8081" || got["10.2.0.1"] != " http:8080" {
		t.Errorf("ports by address: %v", got)
	}
}

func sources(w *world) (out []string) {
	for _, s := range w.slices {
		if s.Labels[mcsv1beta1.LabelServiceName] != "" {
			out = append(out, s.Labels[mcsv1beta1.LabelSourceCluster])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func events(ops []written.Op, reason string) (n int) {
	for _, o := range ops {
		for _, e := range o.Events {
			if e.Reason == reason {
				n++
			}
		}
	}
	return n
}

// Two listeners at one address keep their hostnames and their readiness, in slices of their own
// where a port's name would be twice in one. Both are in the slices of a ClusterSetIP Service too.
func TestListenersOfOneAddress(t *testing.T) {
	for _, kind := range []clustermesh.ServiceType{clustermesh.Headless, clustermesh.ClusterSetIP} {
		w := newWorld(t)
		v := viewOf(exportOf("c2", 1, func(e *clustermesh.Export) { e.Type = kind }))
		for i, name := range []string{"w-0", "w-1"} {
			v = v.change(pod("c2", "10.0.0.1", uint16(8080+i))).change(func(imp *Import) {
				last := len(imp.Endpoints) - 1
				imp.Endpoints[last].Hostname, imp.Endpoints[last].Ready = name, i == 0
				imp.Backends[last].Ready = i == 0
			})
		}
		w.settle(v, serve)
		got := map[string]bool{}
		for _, s := range w.slices {
			for _, e := range s.Endpoints {
				got[fmt.Sprint(s.Labels[discoveryv1.LabelServiceName] != "", " ", deref(e.Hostname), " ", *s.Ports[0].Port, " ", *e.Conditions.Ready)] = true
			}
			if len(s.Ports) != 1 {
				t.Errorf("%s: slice %s has the ports %v", kind, s.Name, s.Ports)
			}
		}
		want := []string{"false w-0 8080 true", "false w-1 8081 false"}
		if kind == clustermesh.ClusterSetIP {
			want = append(want, "true  8080 true", "true  8081 false")
		}
		for _, line := range want {
			if !got[line] {
				t.Errorf("%s: no %q in %v", kind, line, got)
			}
		}
	}
}

// A ready endpoint is ready in the slices although it terminates: so does Kubernetes publish the
// addresses of a Service with publishNotReadyAddresses.
func TestReadyWhileTerminating(t *testing.T) {
	w := newWorld(t)
	v := viewOf(exportOf("c2", 1, func(e *clustermesh.Export) { e.Type = clustermesh.Headless })).change(pod("c2", "10.0.0.1", 8080)).
		change(func(i *Import) { i.Endpoints[0].Terminating = true })
	w.settle(v, serve)
	for _, s := range w.slices {
		if c := s.Endpoints[0].Conditions; !*c.Ready || !*c.Serving || !*c.Terminating {
			t.Errorf("ready %t, serving %t, terminating %t", *c.Ready, *c.Serving, *c.Terminating)
		}
	}
	if len(w.slices) != 1 {
		t.Errorf("%d slices", len(w.slices))
	}
}
