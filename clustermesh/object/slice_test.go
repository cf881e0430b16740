package object

import (
	"fmt"
	"maps"
	"math/rand"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
)

func localOf(slices ...*discoveryv1.EndpointSlice) clustermesh.Local {
	node := &corev1.Node{ObjectMeta: meta("", "n1")}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
	return typed{Nodes: []*corev1.Node{node}, Services: []*corev1.Service{service(nil)},
		Exports: []*mcsv1beta1.ServiceExport{export("default", "serve")}, EndpointSlices: slices}.local()
}

func TestEndpoints(t *testing.T) {
	base := clustermesh.Endpoint{Service: clustermesh.ServiceName{Namespace: "default", Name: "serve"},
		Addr: netip.MustParseAddr("10.1.1.10"), Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}},
		Ready: true, Serving: true}
	with := func(edits ...func(*clustermesh.Endpoint)) (out []clustermesh.Endpoint) {
		for _, edit := range edits {
			e := base
			edit(&e)
			out = append(out, e)
		}
		return out
	}
	same := func(*clustermesh.Endpoint) {}
	addr := func(a string) func(*clustermesh.Endpoint) {
		return func(e *clustermesh.Endpoint) { e.Addr = netip.MustParseAddr(a) }
	}
	const s = "EndpointSlice default/serve-1: "
	for _, c := range []struct {
		what     string
		edit     func(*discoveryv1.EndpointSlice)
		want     []clustermesh.Endpoint
		problems []string
	}{
		{what: "plain", want: with(same)},
		{what: "everything", edit: func(s *discoveryv1.EndpointSlice) {
			s.Endpoints[0] = discoveryv1.Endpoint{Addresses: []string{"10.1.1.10"}, NodeName: ptr("n1"), Zone: ptr("z"), Hostname: ptr("h"),
				TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: "p"},
				Conditions: discoveryv1.EndpointConditions{Ready: ptr(false), Serving: ptr(true), Terminating: ptr(true)}}
		}, want: with(func(e *clustermesh.Endpoint) {
			e.Node, e.Zone, e.Hostname, e.Pod, e.Ready, e.Terminating = "n1", "z", "h", "p", false, true
		})},
		{what: "serving follows ready", edit: func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = ptr(false) },
			want: with(func(e *clustermesh.Endpoint) { e.Ready, e.Serving = false, false })},
		{what: "a missing node", edit: func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].NodeName = ptr("n9") },
			want:     with(func(e *clustermesh.Endpoint) { e.Node = "n9" }),
			problems: []string{"warning: " + s + `endpoints[0].nodeName: there is no Node "n9": no node announces this endpoint; correct the name, add the Node, or leave nodeName out`}},
		{what: "bad addresses", edit: func(s *discoveryv1.EndpointSlice) {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.1.1.300", "10.1.1.11", "fd00::1", "::ffff:10.1.1.1", "169.254.1.1"}},
				discoveryv1.Endpoint{})
		}, want: with(same, addr("10.1.1.11")), problems: []string{
			s + `endpoints[1].addresses[0]: "10.1.1.300" is not an IP address: not used; correct the address; the slice's other endpoints are used`,
			s + `endpoints[1].addresses[2]: fd00::1 is not of the slice's addressType IPv4: not used; correct the address; the slice's other endpoints are used`,
			s + `endpoints[1].addresses[3]: "::ffff:10.1.1.1" is not an IP address: not used; correct the address; the slice's other endpoints are used`,
			s + `endpoints[1].addresses[4]: 169.254.1.1 cannot be reached from other machines: not used; correct the address; the slice's other endpoints are used`,
			s + `endpoints[2].addresses: the endpoint has no address; add one, or remove the endpoint`,
		}},
		{what: "IPv6", edit: func(s *discoveryv1.EndpointSlice) {
			s.AddressType, s.Endpoints[0].Addresses = discoveryv1.AddressTypeIPv6, []string{"fd00::1"}
		}, want: with(addr("fd00::1"))},
		{what: "FQDN", edit: func(s *discoveryv1.EndpointSlice) { s.AddressType = discoveryv1.AddressTypeFQDN },
			problems: []string{s + "addressType: endpoints that are host names (FQDN) cannot be balanced: slice not used; list IP addresses"}},
		{what: "no type", edit: func(s *discoveryv1.EndpointSlice) { s.AddressType = "" },
			problems: []string{s + `addressType: "" is not an address type: slice not used; write IPv4 or IPv6`}},
		{what: "ports", edit: func(s *discoveryv1.EndpointSlice) {
			s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: ptr("nil")}, discoveryv1.EndpointPort{Port: ptr(int32(0))},
				discoveryv1.EndpointPort{Port: ptr(int32(53)), Protocol: ptr(corev1.ProtocolUDP)}, s.Ports[0],
				discoveryv1.EndpointPort{Port: ptr(int32(1)), Protocol: ptr(corev1.Protocol("X"))})
		}, want: with(func(e *clustermesh.Endpoint) {
			e.Ports = []clustermesh.EndpointPort{{Proto: l4.UDP, Port: 53}, {Name: "http", Proto: l4.TCP, Port: 8080}}
		}), problems: []string{
			s + "ports[1].port: port number 0 is missing or out of range: port not used; write 1 to 65535",
			s + "ports[2].port: port number 0 is missing or out of range: port not used; write 1 to 65535",
			s + `ports[5].protocol: protocol "X" is none of TCP, UDP, SCTP: port not used; write TCP or UDP`,
		}},
		{what: "port name", edit: func(s *discoveryv1.EndpointSlice) {
			s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: ptr("http_api"), Port: ptr(int32(81))})
		}, want: with(same), problems: []string{s + `ports[1].name: "http_api" is not a port name: port not used; use lower case letters, digits and -`}},
		{what: "no port name", edit: func(s *discoveryv1.EndpointSlice) { s.Ports[0].Name = nil },
			want: with(func(e *clustermesh.Endpoint) { e.Ports = []clustermesh.EndpointPort{{Proto: l4.TCP, Port: 8080}} }),
			problems: []string{"warning: " + s + `ports[0].name: no port of the slice has the name and protocol of one of its Service, which are "http"/TCP: ` +
				"nothing is balanced to its endpoints; give the slice's ports the names that they have in the Service"}},
		{what: "hostname", edit: func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Hostname = ptr("a.b") }, want: with(same),
			problems: []string{s + `endpoints[0].hostname: "a.b" cannot be part of a DNS name: not used; use lower case letters, digits and -`}},
		{what: "no label", edit: func(s *discoveryv1.EndpointSlice) { s.Labels = nil },
			problems: []string{"warning: " + s + "metadata.labels: no label kubernetes.io/service-name: the slice belongs to no Service; add the label with the name of the Service"}},
		{what: "imported", edit: func(s *discoveryv1.EndpointSlice) { s.Labels[mcsv1beta1.LabelServiceName] = "serve" }},
		{what: "of a Service that is not exported", edit: func(s *discoveryv1.EndpointSlice) {
			s.Labels[discoveryv1.LabelServiceName] = "other"
			s.Endpoints[0].Addresses[0] = "x"
		}},
		{what: "of another namespace", edit: func(s *discoveryv1.EndpointSlice) { s.Namespace = "other" }},
	} {
		got := localOf(endpointSlice(c.edit))
		check(t, c.what, got, c.problems...)
		if !reflect.DeepEqual(got.Endpoints, c.want) {
			t.Errorf("%s: got\n%+v\nwant\n%+v", c.what, got.Endpoints, c.want)
		}
	}
}

// Copies of other clusters' endpoints are not this cluster's, no matter who put them here. Slices that a
// cluster's own controllers made are, also if their Service is exported by another system.
func TestSlicesOfOtherClusters(t *testing.T) {
	for _, c := range []struct {
		what                string
		labels, annotations map[string]string
		own                 bool
	}{
		{what: "strait", labels: map[string]string{discoveryv1.LabelManagedBy: "strait.io"}},
		{what: "the MCS API", labels: map[string]string{"multicluster.kubernetes.io/service-name": "serve"}},
		{what: "Cilium", labels: map[string]string{discoveryv1.LabelManagedBy: "endpointslice-mesh-controller.cilium.io"}},
		{what: "Cilium, by its source", labels: map[string]string{"multicluster.kubernetes.io/source-cluster": "west"}},
		{what: "Karmada", labels: map[string]string{discoveryv1.LabelManagedBy: "endpointslice-dispatch-controller.karmada.io"}},
		{what: "Karmada, by its source", annotations: map[string]string{"endpointslice.karmada.io/provision-cluster": "west"}},
		{what: "Submariner", labels: map[string]string{discoveryv1.LabelManagedBy: "lighthouse-agent.submariner.io"}},
		{what: "Submariner, by its source", labels: map[string]string{"lighthouse.submariner.io/sourceCluster": "west"}},
		{what: "Liqo", labels: map[string]string{discoveryv1.LabelManagedBy: "endpointslice.reflection.liqo.io"}},
		{what: "Linkerd", labels: map[string]string{
			discoveryv1.LabelManagedBy: "endpointslicemirroring-controller.k8s.io", "mirror.linkerd.io/mirrored-service": "true"}},
		{what: "Azure's Fleet Manager", labels: map[string]string{discoveryv1.LabelManagedBy: "endpointsliceimport-controller.networking.fleet.azure.com"}},
		{what: "Clusternet", labels: map[string]string{
			"services.clusternet.io/multi-cluster-service-name": "serve", "services.clusternet.io/multi-cluster-service-namespace": "default"}},
		{what: "AWS Cloud Map", labels: map[string]string{
			discoveryv1.LabelManagedBy: "aws-cloud-map-mcs-controller-for-k8s", "multicluster.kubernetes.io/service-name": "serve"}},
		{what: "Kubernetes", labels: map[string]string{discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}, own: true},
		{what: "a Service that Linkerd exports", labels: map[string]string{
			discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io", "mirror.linkerd.io/exported": "true"}, own: true},
		{what: "a controller of the cluster's own", labels: map[string]string{discoveryv1.LabelManagedBy: "vm-operator.notkarmada.io"}, own: true},
	} {
		got := localOf(endpointSlice(func(s *discoveryv1.EndpointSlice) {
			maps.Copy(s.Labels, c.labels)
			s.Annotations = c.annotations
			s.Endpoints[0].NodeName = ptr("n1")
		}))
		if own := len(got.Endpoints) > 0; own != c.own {
			t.Errorf("%s: the endpoint is this cluster's: %v, want %v", c.what, own, c.own)
		}
	}
}

func TestEndpointsMerge(t *testing.T) {
	a := endpointSlice(func(s *discoveryv1.EndpointSlice) {
		s.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: ptr(false), Terminating: ptr(true)}
	})
	b := endpointSlice(func(s *discoveryv1.EndpointSlice) {
		s.Name = "serve-2"
		s.Endpoints[0].NodeName = ptr("n1")
	})
	want := []clustermesh.Endpoint{{Service: clustermesh.ServiceName{Namespace: "default", Name: "serve"},
		Addr: netip.MustParseAddr("10.1.1.10"), Node: "n1", Ready: true, Serving: true,
		Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}}}}
	for _, got := range []clustermesh.Local{localOf(a, b), localOf(b, a)} {
		check(t, "merge", got)
		if !reflect.DeepEqual(got.Endpoints, want) {
			t.Errorf("got %+v, want %+v", got.Endpoints, want)
		}
	}
}

// Two processes at one address are two listeners: each has its own readiness, hostname and pod.
// Listeners that are alike in all of it are one endpoint.
func TestListenersOfOneAddress(t *testing.T) {
	listener := func(name string, port int32, edit func(*discoveryv1.Endpoint)) *discoveryv1.EndpointSlice {
		return endpointSlice(func(s *discoveryv1.EndpointSlice) {
			s.Name = fmt.Sprint("serve-", port)
			s.Ports = []discoveryv1.EndpointPort{{Name: ptr(name), Port: ptr(port)}}
			edit(&s.Endpoints[0])
		})
	}
	pod := func(pod string, ready bool) func(*discoveryv1.Endpoint) {
		return func(e *discoveryv1.Endpoint) {
			e.Hostname, e.Conditions.Ready = ptr(pod), ptr(ready)
			e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: pod}
		}
	}
	for what, c := range map[string]struct {
		slices [3]*discoveryv1.EndpointSlice
		want   []string
	}{
		"one is ready": {[3]*discoveryv1.EndpointSlice{listener("http", 8080, pod("w-0", true)), listener("http", 8081, pod("w-1", false))},
			[]string{"w-0 w-0 true http:8080", "w-1 w-1 false http:8081"}},
		"both are": {[3]*discoveryv1.EndpointSlice{listener("http", 8080, pod("w-0", true)), listener("http", 8081, pod("w-1", true))},
			[]string{"w-0 w-0 true http:8080", "w-1 w-1 true http:8081"}},
		"one pod with two ports": {[3]*discoveryv1.EndpointSlice{listener("admin", 9090, pod("w-0", true)), listener("http", 8080, pod("w-0", true)), listener("http", 8081, pod("w-1", true))},
			[]string{"w-0 w-0 true admin:9090 http:8080", "w-1 w-1 true http:8081"}},
		"without names": {[3]*discoveryv1.EndpointSlice{listener("http", 8080, func(*discoveryv1.Endpoint) {}), listener("http", 8081, func(*discoveryv1.Endpoint) {})},
			[]string{"  true http:8080 http:8081"}},
	} {
		for _, order := range [][3]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
			var in []*discoveryv1.EndpointSlice
			for _, i := range order {
				if c.slices[i] != nil {
					in = append(in, c.slices[i])
				}
			}
			var got []string
			for _, e := range localOf(in...).Endpoints {
				line := fmt.Sprint(e.Hostname, " ", e.Pod, " ", e.Ready)
				for _, p := range e.Ports {
					line += fmt.Sprintf(" %s:%d", p.Name, p.Port)
				}
				got = append(got, line)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s, in the order %v: got %q, want %q", what, order, got, c.want)
			}
		}
	}
}

// drawObjects makes objects with unique names, right and wrong ones.
func drawObjects(t *rapid.T) typed {
	var o typed
	name := rapid.SampledFrom([]string{"a", "b", "c.d", "kubernetes"})
	ns := rapid.SampledFrom([]string{"default", "x", "kube-system"})
	ip := rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "fd00::1", "x", "10.0.0.1 "})
	proto := rapid.SampledFrom([]corev1.Protocol{"", "TCP", "UDP", "SCTP", "X"})
	port := rapid.Int32Range(-1, 3)
	for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
		n := &corev1.Node{ObjectMeta: meta("", "n"+string(rune('0'+i)))}
		n.Spec.PodCIDR = rapid.SampledFrom([]string{"", "10.0.0.0/24", "x"}).Draw(t, "cidr")
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip.Draw(t, "ip")}}
		o.Nodes = append(o.Nodes, n)
	}
	seen := map[string]bool{}
	for range rapid.IntRange(0, 6).Draw(t, "services") {
		m := meta(ns.Draw(t, "ns"), name.Draw(t, "name"))
		if seen[m.Namespace+m.Name] {
			continue
		}
		seen[m.Namespace+m.Name] = true
		s := &corev1.Service{ObjectMeta: m}
		yes := rapid.SampledFrom([]string{"true", "false", "x", "TRUE"})
		for _, key := range rapid.SliceOfN(rapid.SampledFrom(slices.Concat(globalNames, sharedNames, affinityNames)), 0, 3).Draw(t, "annotations") {
			s.Annotations = map[string]string{globalNames[0]: yes.Draw(t, "global"), key: yes.Draw(t, "value")}
		}
		if rapid.Bool().Draw(t, "derived") {
			s.Labels = map[string]string{LabelManagedBy: ManagedBy, LabelServiceImport: name.Draw(t, "import")}
			s.Spec.ClusterIP = ip.Draw(t, "cluster IP")
		}
		for range rapid.IntRange(0, 3).Draw(t, "ports") {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: name.Draw(t, "port name"), Port: port.Draw(t, "port"), Protocol: proto.Draw(t, "protocol")})
		}
		o.Services = append(o.Services, s)
		if rapid.Bool().Draw(t, "exported") {
			o.Exports = append(o.Exports, export(m.Namespace, m.Name))
		}
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "slices") {
		s := &discoveryv1.EndpointSlice{ObjectMeta: meta(ns.Draw(t, "ns"), "s"+string(rune('0'+i))), AddressType: discoveryv1.AddressTypeIPv4}
		s.Labels = map[string]string{discoveryv1.LabelServiceName: name.Draw(t, "of")}
		s.Ports = []discoveryv1.EndpointPort{{Name: ptr(name.Draw(t, "port name")), Port: ptr(port.Draw(t, "port"))}}
		for range rapid.IntRange(0, 3).Draw(t, "endpoints") {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{ip.Draw(t, "ip")},
				NodeName: ptr("n" + string(rune('0'+rapid.IntRange(0, 5).Draw(t, "node")))), Conditions: discoveryv1.EndpointConditions{Ready: ptr(rapid.Bool().Draw(t, "ready"))}})
		}
		o.EndpointSlices = append(o.EndpointSlices, s)
	}
	return o
}

func shuffled[T any](r *rand.Rand, in []T) []T {
	out := make([]T, len(in))
	for i, j := range r.Perm(len(in)) {
		out[i] = in[j]
	}
	return out
}

func TestLocalProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objs := drawObjects(t)
		got := objs.local()
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		again := typed{Nodes: shuffled(r, objs.Nodes), Services: shuffled(r, objs.Services),
			EndpointSlices: shuffled(r, objs.EndpointSlices), Exports: shuffled(r, objs.Exports)}.local()
		if !reflect.DeepEqual(got, again) {
			t.Fatalf("the order of objects matters:\n%+v\n%+v", got, again)
		}
		offered := map[clustermesh.ServiceName]bool{}
		for _, g := range got.Globals {
			if offered[g.Service] || clustermesh.Barred(nil).Why(g.Service) != "" {
				t.Fatalf("global %+v", g)
			}
			offered[g.Service] = true
		}
		exported := map[clustermesh.ServiceName]bool{}
		for _, e := range got.Exports {
			if exported[e.Service] || len(e.Ports) == 0 || clustermesh.Barred(nil).Why(e.Service) != "" || strings.Contains(e.Service.Name, ".") {
				t.Fatalf("export %+v", e)
			}
			exported[e.Service], offered[e.Service] = true, true
		}
		for _, s := range objs.Services {
			if name := (clustermesh.ServiceName{Namespace: s.Namespace, Name: s.Name}); derivedFor(s) != "" && offered[name] {
				t.Fatalf("derived Service %s is offered", name)
			}
		}
		type listener struct {
			s clustermesh.ServiceName
			a netip.Addr
			p clustermesh.EndpointPort
		}
		seen := map[listener]bool{}
		for _, e := range got.Endpoints {
			for _, p := range portsOrNone(e.Ports) {
				l := listener{e.Service, e.Addr, p}
				if !offered[e.Service] || seen[l] || !e.Addr.IsValid() {
					t.Fatalf("endpoint %+v", e)
				}
				seen[l] = true
			}
		}
		for _, p := range got.Problems {
			if p.Object == "" || p.Message == "" || p.Try == "" || strings.Contains(p.String(), "\n") {
				t.Fatalf("problem %+v", p)
			}
		}
	})
}
