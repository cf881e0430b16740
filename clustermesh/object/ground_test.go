package object

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"pgregory.net/rapid"
)

func podAt(ns, name string, phase corev1.PodPhase, host bool, ips ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta(ns, name), Spec: corev1.PodSpec{HostNetwork: host}, Status: corev1.PodStatus{Phase: phase}}
	for _, ip := range ips {
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
	}
	return p
}

// tenants are a cluster of two nodes, whose Pods on n1 are known, with a slice of default/serve.
func tenants(node, addr string, edits ...func(*typed)) typed {
	n := func(name, cidr string, addrs ...string) *corev1.Node {
		out := &corev1.Node{ObjectMeta: meta("", name), Spec: corev1.NodeSpec{PodCIDRs: []string{cidr}}}
		for _, a := range addrs {
			out.Status.Addresses = append(out.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
		}
		return out
	}
	cluster := service(nil)
	cluster.Namespace, cluster.Name, cluster.Spec.ClusterIP = "other", "api", "10.1.200.1"
	o := typed{
		Nodes:    []*corev1.Node{n("n1", "10.1.1.0/24", "192.0.2.1", "2001:db8::1"), n("n2", "10.1.2.0/24", "192.0.2.2")},
		Services: []*corev1.Service{service(nil), cluster}, Exports: []*mcsv1beta1.ServiceExport{export("default", "serve")},
		Pods: []*corev1.Pod{
			podAt("default", "web", corev1.PodRunning, false, "10.1.1.10", "fd00:1::10"), podAt("other", "db", corev1.PodRunning, false, "10.1.1.53"),
			podAt("default", "job", corev1.PodSucceeded, false, "10.1.1.54"), podAt("other", "heir", corev1.PodRunning, false, "10.1.1.54"),
			podAt("kube-system", "proxy", corev1.PodRunning, true, "192.0.2.1", "2001:db8::1"), podAt("default", "gone", corev1.PodFailed, true, "192.0.2.1"),
		},
		EndpointSlices: []*discoveryv1.EndpointSlice{endpointSlice(func(s *discoveryv1.EndpointSlice) {
			if s.Endpoints[0].Addresses = []string{addr}; strings.Contains(addr, ":") {
				s.AddressType = discoveryv1.AddressTypeIPv6
			}
			if node != "" {
				s.Endpoints[0].NodeName = &node
			}
			s.Endpoints[0].TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "web"}
		})},
	}
	for _, edit := range edits {
		edit(&o)
	}
	return o
}

// TestEndpointsOfTenants: what a slice says counts as far as the Pods of its namespace bear it out.
func TestEndpointsOfTenants(t *testing.T) {
	pinned := func(ranges ...string) func(*typed) {
		return func(o *typed) {
			for _, r := range ranges {
				o.Config.Endpoints = append(o.Config.Endpoints, netip.MustParsePrefix(r))
			}
		}
	}
	host := func(ns string) func(*typed) {
		return func(o *typed) {
			o.Pods = append(o.Pods, podAt(ns, "host", corev1.PodRunning, true, "192.0.2.1", "2001:db8::1"))
		}
	}
	unread := func(o *typed) { o.Pods = nil }
	files := func(o *typed) { o.Pods, o.Config.ReadOnly = nil, true }
	for _, c := range []struct {
		what, node, addr string
		edits            []func(*typed)
		says             string // empty: the endpoint is used
	}{
		{"its own Pod", "n1", "10.1.1.10", nil, ""},
		{"its own Pod, IPv6", "n1", "fd00:1::10", nil, ""},
		{"its own Pod without a node", "", "10.1.1.10", []func(*typed){pinned("10.1.0.0/16")}, ""},
		{"no Pod, in the node's prefixes", "n1", "10.1.1.99", nil, ""},
		{"a Pod of another namespace", "n1", "10.1.1.53", nil, "STR2325 endpoints[0].addresses[0]: 10.1.1.53 is the address of a Pod of another namespace: not used"},
		{"the same without a node", "", "10.1.1.53", []func(*typed){pinned("10.1.0.0/16")}, "a Pod of another namespace"},
		{"the address of a Pod that has ended", "n1", "10.1.1.54", nil, "a Pod of another namespace"},
		{"the node", "n1", "192.0.2.1", nil, "192.0.2.1 is an address of Node n1, and no Pod of namespace default uses the network of its node there"},
		{"the node, IPv6", "n1", "2001:db8::1", nil, "is an address of Node n1"},
		{"the node, with a Pod of another namespace there", "n1", "192.0.2.1", []func(*typed){host("other")}, "is an address of Node n1"},
		{"the node, with a Pod of its own there", "n1", "192.0.2.1", []func(*typed){host("default")}, ""},
		{"the node, with a Pod that says so but has a network of its own", "n1", "192.0.2.1", []func(*typed){func(o *typed) {
			o.Pods = append(o.Pods, podAt("default", "liar", corev1.PodRunning, false, "192.0.2.1"))
		}}, "is an address of Node n1"},
		{"another node", "n1", "192.0.2.2", nil, "is an address of Node n2"},
		{"another node's Pod", "n1", "10.1.2.9", nil, "no Pod on Node n1 has 10.1.2.9"},
		{"what the configuration gives the node", "n1", "172.16.0.9", []func(*typed){func(o *typed) {
			o.Config.NodePrefixes = []netip.Prefix{netip.MustParsePrefix("172.16.0.0/24")}
		}}, ""},
		{"a ClusterIP", "", "10.1.200.1", []func(*typed){pinned("10.1.0.0/16")}, "is the ClusterIP of a Service"},
		{"a machine", "", "192.0.2.100", []func(*typed){pinned("10.1.0.0/16")}, "STR2326 endpoints[0].addresses[0]: it names no node, and 192.0.2.100 is in no range of this cluster's pin"},
		{"a node, without naming it", "", "192.0.2.1", []func(*typed){pinned("10.1.0.0/16")}, "STR2326"},
		{"a machine that the pin lists", "", "192.0.2.100", []func(*typed){pinned("10.1.0.0/16", "192.0.2.100/32")}, ""},
		{"a machine, and nothing is pinned", "", "192.0.2.100", nil, ""},
		{"the node, and Pods cannot be read", "n1", "192.0.2.1", []func(*typed){unread}, "is an address of Node n1"},
		{"a Pod, and Pods cannot be read", "n1", "10.1.2.9", []func(*typed){unread}, ""},
		{"the node, in a file", "n1", "192.0.2.1", []func(*typed){files}, ""},
		{"a machine, in a file", "", "192.0.2.100", []func(*typed){files, pinned("10.1.0.0/16")}, ""},
	} {
		got := tenants(c.node, c.addr, c.edits...).local()
		if used := len(got.Endpoints) == 1; used != (c.says == "") {
			t.Errorf("%s: used %v; problems %v", c.what, used, got.Problems)
		}
		if c.says == "" && len(got.Problems) > 0 {
			t.Errorf("%s: problems %v", c.what, got.Problems)
		}
		if c.says == "" {
			continue
		}
		if len(got.Problems) != 1 || got.Problems[0].Object != "EndpointSlice default/serve-1" ||
			!strings.Contains(fmt.Sprintf("%s %s: %s", got.Problems[0].Code, got.Problems[0].Field, got.Problems[0].Message), c.says) {
			t.Errorf("%s: problems %v, want %q", c.what, got.Problems, c.says)
		}
	}
}

// TestManyDoubts: a slice with many endpoints makes one Problem for each reason.
func TestManyDoubts(t *testing.T) {
	got := tenants("n1", "192.0.2.1", func(o *typed) {
		for i := range 90 {
			o.EndpointSlices[0].Endpoints[0].Addresses = append(o.EndpointSlices[0].Endpoints[0].Addresses, fmt.Sprintf("10.9.0.%d", i+1))
		}
		o.EndpointSlices[0].Endpoints = append(o.EndpointSlices[0].Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.1.1.10"}, NodeName: ptr("n1")})
	}).local()
	if len(got.Endpoints) != 1 || len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Message, "not used, with 90 more addresses of the slice") {
		t.Errorf("%v %v", got.Endpoints, got.Problems)
	}
}

// TestTenantsProperties: whatever slices say, in whatever number for one Service, an endpoint on the node's own
// address has a Pod with hostNetwork in its namespace, and none has an address of another namespace's Pod.
func TestTenantsProperties(t *testing.T) {
	spaces := rapid.SampledFrom([]string{"default", "x"})
	ip := rapid.SampledFrom([]string{"10.1.1.1", "10.1.1.2", "10.1.1.3", "192.0.2.1", "192.0.2.2", "192.0.2.9", "10.1.2.1"})
	rapid.Check(t, func(t *rapid.T) {
		o := tenants("n1", "10.1.1.1")
		o.EndpointSlices, o.Pods = nil, []*corev1.Pod{}
		second := service(nil)
		second.Namespace = "x"
		o.Services, o.Exports = append(o.Services, second), append(o.Exports, export("x", "serve"))
		o.Config.Endpoints = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
		for i := range rapid.IntRange(0, 4).Draw(t, "pods") {
			o.Pods = append(o.Pods, podAt(spaces.Draw(t, "ns"), fmt.Sprint("p", i), rapid.SampledFrom([]corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded}).Draw(t, "phase"),
				rapid.Bool().Draw(t, "host"), ip.Draw(t, "ip")))
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "slices") {
			o.EndpointSlices = append(o.EndpointSlices, endpointSlice(func(s *discoveryv1.EndpointSlice) {
				s.Namespace, s.Name = spaces.Draw(t, "of"), fmt.Sprint("s", i)
				s.Endpoints[0].Addresses = rapid.SliceOfN(ip, 1, 3).Draw(t, "addresses")
				if node := rapid.SampledFrom([]string{"", "n1"}).Draw(t, "node"); node != "" {
					s.Endpoints[0].NodeName = &node
				}
			}))
		}
		for _, e := range o.local().Endpoints {
			holders := func(ns string, host bool) bool {
				return slices.ContainsFunc(o.Pods, func(p *corev1.Pod) bool {
					return p.Status.Phase == corev1.PodRunning && (p.Namespace == ns) && (!host || p.Spec.HostNetwork) && p.Status.PodIPs[0].IP == e.Addr.String()
				})
			}
			machine := strings.HasPrefix(e.Addr.String(), "192.")
			others := map[string]string{"default": "x", "x": "default"}[e.Service.Namespace]
			if machine && !holders(e.Service.Namespace, true) && !(e.Addr == netip.MustParseAddr("192.0.2.9") && holders(e.Service.Namespace, false)) ||
				!machine && holders(others, false) && !holders(e.Service.Namespace, false) {
				t.Fatalf("%+v of Pods %v", e, o.Pods)
			}
		}
	})
}
