package object

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
)

func ptr[T any](v T) *T { return &v }

// typed are the objects as an API server has them.
type typed struct {
	Nodes          []*corev1.Node
	Services       []*corev1.Service
	EndpointSlices []*discoveryv1.EndpointSlice
	Exports        []*mcsv1beta1.ServiceExport
	Aliases        map[string][]*metav1.PartialObjectMetadata // by resource
	ServiceImports []*mcsv1beta1.ServiceImport
	Namespaces     []*metav1.PartialObjectMetadata // nil where they are not known
	Pods           []*corev1.Pod                   // nil where they are not known
	Config         Config
}

// local reads them, as both sources do.
func (o typed) local() clustermesh.Local {
	objs := Objects{Config: o.Config, All: map[string]bool{NamespaceResource: o.Namespaces != nil, PodResource: o.Pods != nil}}
	insert(&objs, NodeResource, o.Nodes)
	insert(&objs, ServiceResource, o.Services)
	insert(&objs, SliceResource, o.EndpointSlices)
	insert(&objs, ExportResource, o.Exports)
	insert(&objs, ImportResource, o.ServiceImports)
	insert(&objs, NamespaceResource, o.Namespaces)
	insert(&objs, PodResource, o.Pods)
	for resource, aliases := range o.Aliases {
		insert(&objs, resource, aliases)
	}
	return Local(objs)
}

// insert inserts what is kept of whole objects of a kind.
func insert[T any](objs *Objects, resource string, in []T) {
	k := Kinds[slices.IndexFunc(Kinds, func(k Kind) bool { return k.Resource == resource })]
	for _, o := range in {
		kept, ok := k.Keep(o, "")
		if !ok {
			panic(resource)
		}
		objs.Insert(kept)
	}
}

func meta(ns, name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }

func service(edit func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: meta("default", "serve"), Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}}}}
	if edit != nil {
		edit(s)
	}
	return s
}

func export(ns, name string) *mcsv1beta1.ServiceExport {
	return &mcsv1beta1.ServiceExport{ObjectMeta: meta(ns, name)}
}

func endpointSlice(edit func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: meta("default", "serve-1"), AddressType: discoveryv1.AddressTypeIPv4,
		Ports:     []discoveryv1.EndpointPort{{Name: ptr("http"), Port: ptr(int32(8080))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.1.10"}}}}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: "serve"}
	if edit != nil {
		edit(s)
	}
	return s
}

func check(t *testing.T, what string, got clustermesh.Local, problems ...string) {
	t.Helper()
	var lines []string
	for _, p := range got.Problems {
		line := p.String()
		if p.Warning {
			line = "warning: " + line
		}
		lines = append(lines, line)
	}
	if !slices.Equal(lines, problems) {
		t.Errorf("%s: problems\n%s\nwant\n%s", what, strings.Join(lines, "\n"), strings.Join(problems, "\n"))
	}
}

func TestExports(t *testing.T) {
	http := clustermesh.ServicePort{Name: "http", Proto: l4.TCP, Port: 80}
	base := clustermesh.Export{Service: clustermesh.ServiceName{Namespace: "default", Name: "serve"},
		Type: clustermesh.ClusterSetIP, Ports: []clustermesh.ServicePort{http}, Families: []clustermesh.Family{clustermesh.IPv4}}
	with := func(edit func(*clustermesh.Export)) *clustermesh.Export { e := base; edit(&e); return &e }
	const s = "Service default/serve: "
	for _, c := range []struct {
		what     string
		edit     func(*corev1.Service)
		want     *clustermesh.Export
		problems []string
	}{
		{what: "plain", want: &base},
		{what: "node port", edit: func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }, want: &base},
		{what: "headless", edit: func(s *corev1.Service) { s.Spec.ClusterIP = "None"; s.Spec.SessionAffinity = "ClientIP" },
			want: with(func(e *clustermesh.Export) { e.Type = clustermesh.Headless })},
		{what: "affinity default", edit: func(s *corev1.Service) { s.Spec.SessionAffinity = "ClientIP" },
			want: with(func(e *clustermesh.Export) { e.AffinitySeconds = 10800 })},
		{what: "affinity", edit: func(s *corev1.Service) {
			s.Spec.SessionAffinity = "ClientIP"
			s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr(int32(10))}}
		}, want: with(func(e *clustermesh.Export) { e.AffinitySeconds = 10 })},
		{what: "affinity out of range", edit: func(s *corev1.Service) {
			s.Spec.SessionAffinity = "ClientIP"
			s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr(int32(-1))}}
		}, want: with(func(e *clustermesh.Export) { e.AffinitySeconds = 10800 }),
			problems: []string{s + "spec.sessionAffinityConfig.clientIP.timeoutSeconds: -1 is out of range: 10800 is used; write 1 to 86400"}},
		{what: "affinity unknown", edit: func(s *corev1.Service) { s.Spec.SessionAffinity = "Pod" }, want: &base,
			problems: []string{s + `spec.sessionAffinity: "Pod" is not a session affinity: none is used; write ClientIP or None`}},
		{what: "external name", edit: func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName },
			problems: []string{s + "spec.type: a Service of type ExternalName cannot be exported; use another type, or delete the ServiceExport"}},
		{what: "no ports", edit: func(s *corev1.Service) { s.Spec.Ports = nil },
			problems: []string{s + "spec.ports: the Service has no ports: not offered to other clusters; add at least one port"}},
		{what: "bad ports", edit: func(s *corev1.Service) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "b", Port: 70000}, corev1.ServicePort{Name: "c", Port: 1, Protocol: "QUIC"},
				corev1.ServicePort{Port: 2}, corev1.ServicePort{Name: "http", Port: 3}, corev1.ServicePort{Name: "d", Port: 80},
				corev1.ServicePort{Name: "e", Port: 80, Protocol: "UDP", AppProtocol: ptr("h2")}, corev1.ServicePort{Name: "F_", Port: 9})
		}, want: with(func(e *clustermesh.Export) {
			e.Ports = []clustermesh.ServicePort{http, {Name: "e", Proto: l4.UDP, Port: 80, AppProtocol: "h2"}}
		}), problems: []string{
			s + "spec.ports[1].port: 70000 is not a port: not used; write 1 to 65535",
			s + `spec.ports[2].protocol: protocol "QUIC" is none of TCP, UDP, SCTP: port not used; write TCP or UDP`,
			s + "spec.ports[3].name: in a Service with several ports, each needs a name: port not used; name every port",
			s + "spec.ports[4]: port http:3/TCP repeats the name or number of port http:80/TCP: not used; give every port its own name and number",
			s + "spec.ports[5]: port d:80/TCP repeats the name or number of port http:80/TCP: not used; give every port its own name and number",
			s + `spec.ports[7].name: "F_" is not a port name: not used; use lower case letters, digits and -`,
		}},
		{what: "only bad ports", edit: func(s *corev1.Service) { s.Spec.Ports[0].Port = 0 }, problems: []string{
			s + "spec.ports: no port of the Service can be used: not offered to other clusters; correct its ports",
			s + "spec.ports[0].port: 0 is not a port: not used; write 1 to 65535"}},
		{what: "SCTP goes on beside", edit: func(s *corev1.Service) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "s", Port: 5, Protocol: "SCTP"})
		}, want: with(func(e *clustermesh.Export) {
			e.Ports = []clustermesh.ServicePort{http, {Name: "s", Proto: l4.SCTP, Port: 5}}
		}), problems: []string{"warning: " + s + "spec.ports[1].protocol: SCTP is not served by socket load balancing; the other ports are; reach this port at the pods' own addresses"}},
	} {
		objs := typed{Services: []*corev1.Service{service(c.edit)}, Exports: []*mcsv1beta1.ServiceExport{export("default", "serve")},
			EndpointSlices: []*discoveryv1.EndpointSlice{endpointSlice(nil)}}
		got := objs.local()
		check(t, c.what, got, c.problems...)
		want, endpoints := []clustermesh.Export(nil), 0
		if c.want != nil {
			want, endpoints = []clustermesh.Export{*c.want}, 1
		}
		if !reflect.DeepEqual(got.Exports, want) {
			t.Errorf("%s: got %+v, want %+v", c.what, got.Exports, want)
		}
		if len(got.Endpoints) != endpoints {
			t.Errorf("%s: %d endpoints, want %d", c.what, len(got.Endpoints), endpoints)
		}
	}
}

func TestWhatIsNotExported(t *testing.T) {
	kube := service(func(s *corev1.Service) { s.Name = "kubernetes" })
	system := service(func(s *corev1.Service) { s.Namespace = "kube-system" })
	got := typed{
		Services:       []*corev1.Service{service(nil), kube, system},
		EndpointSlices: []*discoveryv1.EndpointSlice{endpointSlice(nil)},
		Exports: []*mcsv1beta1.ServiceExport{export("default", "kubernetes"), export("kube-system", "serve"),
			export("other", "serve"), export("default", "a.b")},
	}.local()
	check(t, "not exported", got,
		`ServiceExport default/a.b: metadata.name: "a.b" cannot be part of a DNS name: not exported; must not contain dots`,
		"warning: ServiceExport default/kubernetes: metadata: Services of the cluster itself are barred: not exported; delete the ServiceExport, or export a Service of another namespace",
		"warning: ServiceExport kube-system/serve: metadata: Services of the cluster itself are barred: not exported; delete the ServiceExport, or export a Service of another namespace",
		"warning: ServiceExport other/serve: there is no Service of this name: nothing is exported; create Service other/serve, or delete the ServiceExport")
	if len(got.Exports) != 0 || len(got.Endpoints) != 0 {
		t.Errorf("exports %v, endpoints %v", got.Exports, got.Endpoints)
	}
}

func TestExportCreated(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want int64
	}{{time.Time{}, 0}, {time.Unix(1700000000, 5), 1700000000}, {time.Unix(-5, 0), 0}} {
		e := export("default", "serve")
		e.CreationTimestamp = metav1.NewTime(c.at)
		got := typed{Services: []*corev1.Service{service(nil)}, Exports: []*mcsv1beta1.ServiceExport{e}}.local()
		if got.Exports[0].Created != c.want {
			t.Errorf("%s: created %d, want %d", c.at, got.Exports[0].Created, c.want)
		}
	}
}

func TestNodes(t *testing.T) {
	node := func(name string, edit func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: meta("", name)}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
		if edit != nil {
			edit(n)
		}
		return n
	}
	full := node("n2", func(n *corev1.Node) {
		n.Labels = map[string]string{"topology.kubernetes.io/region": "r", "failure-domain.beta.kubernetes.io/region": "old",
			"failure-domain.beta.kubernetes.io/zone": "z", "strait.io/relay": "only"}
		n.Spec.PodCIDRs = []string{"10.1.2.3/24", "fd00:1::/64", "10.1.2.0/24", "10.1.2.0/33", "0.0.0.0/0"}
		n.Spec.PodCIDR = "10.9.9.0/24"
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "n2"}, {Type: corev1.NodeExternalIP, Address: "203.0.113.1"},
			{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeInternalIP, Address: "2001:db8::1"},
			{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}, {Type: corev1.NodeExternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeExternalIP, Address: "x"}}
	})
	old := node("n1", func(n *corev1.Node) { n.Spec.PodCIDR = "10.1.1.0/24" })
	bare := node("n3", func(n *corev1.Node) {
		n.Status.Addresses, n.Labels = nil, map[string]string{"strait.io/relay": "maybe"}
	})
	got := typed{Nodes: []*corev1.Node{full, old, bare, node("n1", nil), node("N 4", nil)}}.local()
	want := []clustermesh.Node{
		{Name: "n1", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.1.1.0/24")}},
		{Name: "n2", Locality: clustermesh.Locality{Region: "r", Zone: "z"}, Relay: clustermesh.RelayOnly,
			Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("203.0.113.1")},
			Prefixes:  []netip.Prefix{netip.MustParsePrefix("10.1.2.0/24"), netip.MustParsePrefix("fd00:1::/64")}},
		{Name: "n3"},
	}
	if !reflect.DeepEqual(got.Nodes, want) {
		t.Errorf("got  %+v\nwant %+v", got.Nodes, want)
	}
	lines := []string{
		"Node n1: metadata.name: another Node has this name: only the first is used; give every Node its own name",
		`Node n2: spec.podCIDRs[3]: "10.1.2.0/33" is not a CIDR: not used; write the pods' prefix such as 10.1.2.0/24`,
		`Node n2: spec.podCIDRs[4]: 0.0.0.0/0 covers every address: not used; write the pods' prefix such as 10.1.2.0/24`,
		"Node n2: status.addresses[4].address: 127.0.0.1 cannot be reached from other machines: not used; write an address such as 192.0.2.1",
		`Node n2: status.addresses[6].address: "x" is not an IP address: not used; write an address such as 192.0.2.1`,
		`Node n3: metadata.labels[strait.io/relay]: "maybe" is none of auto, never, only: as if it were auto; write auto, never or only, or delete the label`,
		`warning: Node n2: spec.podCIDR: "10.9.9.0/24" is not spec.podCIDRs[0], "10.1.2.3/24": not used; write the same prefix in both fields, or remove spec.podCIDR`,
		"warning: Node n3: status.addresses: no InternalIP or ExternalIP: this object gives other clusters no address of the node; add an address of type InternalIP",
	}
	i := slices.IndexFunc(got.Problems, func(p clustermesh.Problem) bool { return p.Object == "Node N 4" })
	if i < 0 || got.Problems[i].Field != "metadata.name" {
		t.Errorf("no problem of Node N 4 in %v", got.Problems)
	} else {
		got.Problems = slices.Delete(got.Problems, i, i+1) // its text is Kubernetes' own
	}
	check(t, "nodes", got, lines...)
}

// An API server refuses a podCIDR that is not the first of podCIDRs. In a file it would be ignored in silence.
func TestPodCIDRBesidePodCIDRs(t *testing.T) {
	for _, c := range []struct {
		one, used string
		all       []string
		problems  []string
	}{
		{"10.1.1.0/24", "10.1.1.0/24", nil, nil},
		{"10.1.1.0/24", "10.1.1.0/24", []string{"10.1.1.0/24"}, nil},
		{"", "10.1.1.0/24", []string{"10.1.1.0/24"}, nil},
		{"10.2.1.0/24", "10.1.1.0/24", []string{"10.1.1.0/24"}, []string{
			"warning: Node n1: spec.podCIDR: \"10.2.1.0/24\" is not spec.podCIDRs[0], \"10.1.1.0/24\": not used; write the same prefix in both fields, or remove spec.podCIDR"}},
	} {
		got := typed{Nodes: []*corev1.Node{{ObjectMeta: meta("", "n1"), Spec: corev1.NodeSpec{PodCIDR: c.one, PodCIDRs: c.all},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}}}}}.local()
		if p := got.Nodes[0].Prefixes; len(p) != 1 || p[0].String() != c.used {
			t.Errorf("%q beside %q: prefixes %v, want %s", c.one, c.all, p, c.used)
		}
		check(t, c.one, got, c.problems...)
	}
}

// The annotation says what a node answers for, whatever its spec says; what is wrong with it is said, and the rest counts.
func TestNodePrefixesByAnnotation(t *testing.T) {
	prefixes := func(texts ...string) (out []netip.Prefix) {
		for _, x := range texts {
			out = append(out, netip.MustParsePrefix(x))
		}
		return out
	}
	const where = "Node n1: metadata.annotations[strait.io/prefixes]: "
	const try = `; write the prefixes of the node's pods, separated by commas, such as "10.1.2.0/24,fd00:1:2::/64"`
	for _, c := range []struct {
		value    string
		want     []netip.Prefix
		problems []string
	}{
		{"10.9.1.0/24", prefixes("10.9.1.0/24"), nil},
		{" 10.9.1.7/24, fd09:1::/64 ,10.9.1.0/24", prefixes("10.9.1.0/24", "fd09:1::/64"), nil},
		{"10.9.1.0/24,x", prefixes("10.9.1.0/24"), []string{where + `"x" is not a CIDR: not used` + try}},
		{"0.0.0.0/0", nil, []string{where + `0.0.0.0/0 covers every address: not used` + try}},
		{"", nil, []string{where + `"" is not a CIDR: not used` + try}},
	} {
		n := &corev1.Node{ObjectMeta: meta("", "n1"), Spec: corev1.NodeSpec{PodCIDRs: []string{"10.1.1.0/24"}},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}}}
		n.Annotations = map[string]string{"strait.io/prefixes": c.value}
		got := typed{Nodes: []*corev1.Node{n}}.local()
		check(t, c.value, got, c.problems...)
		if !slices.Equal(got.NodePrefixes["n1"], c.want) {
			t.Errorf("%q: %v, want %v", c.value, got.NodePrefixes["n1"], c.want)
		}
		if !slices.Equal(got.Nodes[0].Prefixes, prefixes("10.1.1.0/24")) {
			t.Errorf("%q: the object's own became %v", c.value, got.Nodes[0].Prefixes)
		}
	}
}

// A node is the entry to ranges that have ClusterIPs of its cluster, and to no others.
func TestClusterIPsByAnnotation(t *testing.T) {
	const where = "Node n1: metadata.annotations[strait.io/cluster-ips]: "
	const try = `; write the cluster's range of ClusterIPs, or single ones, separated by commas, such as "10.96.0.0/16" or "10.96.3.4/32"`
	services := []*corev1.Service{service(func(s *corev1.Service) { s.Spec.ClusterIP = "10.96.0.1" }),
		service(func(s *corev1.Service) { s.Name, s.Spec.ClusterIPs = "dns", []string{"10.96.3.4", "fd00:96::a"} }),
		service(func(s *corev1.Service) { s.Name, s.Spec.ClusterIP = "pods", "None" })}
	for _, c := range []struct {
		value, want string
		problems    []string
	}{
		{"10.96.0.0/12,fd00:96::/112", "[10.96.0.0/12 fd00:96::/112]", nil},
		{"10.96.3.4/32", "[10.96.3.4/32]", nil},
		{"10.1.1.0/24,10.96.0.0/16", "[10.96.0.0/16]", []string{where + `no Service of this cluster has a ClusterIP in 10.1.1.0/24: not used` + try}},
		{"10.96.0.0", "[]", []string{where + `"10.96.0.0" is not a CIDR: not used` + try}},
	} {
		n := &corev1.Node{ObjectMeta: meta("", "n1"), Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}}}
		n.Annotations = map[string]string{"strait.io/cluster-ips": c.value}
		got := typed{Nodes: []*corev1.Node{n}, Services: services}.local()
		check(t, c.value, got, c.problems...)
		if have := fmt.Sprint(got.NodeClusterIPs["n1"]); have != c.want {
			t.Errorf("%q: %s, want %s", c.value, have, c.want)
		}
		if have := fmt.Sprint(got.ClusterIPs); have != "[10.96.0.0/22 fd00:96::a/128]" {
			t.Errorf("the ClusterIPs are in %s", have)
		}
		if len(got.NodePrefixes) > 0 || len(got.Nodes[0].Prefixes) > 0 {
			t.Errorf("%q: they became pods' prefixes", c.value)
		}
	}
}
