package daemon

import (
	"net/netip"
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
)

// I1: a service is imported where its namespace exists.
func TestNamesOfNamespacesThatExist(t *testing.T) {
	var r plan.Result
	for _, ns := range []string{"here", "elsewhere"} {
		r.Imports = append(r.Imports, &plan.Import{
			Import: &clustermesh.Import{Service: clustermesh.ServiceName{Namespace: ns, Name: "serve"}, Type: clustermesh.ClusterSetIP},
			IPs:    []netip.Addr{netip.MustParseAddr("10.96.0.1")},
		})
	}
	for _, c := range []struct {
		namespaces []string
		want       int
	}{{nil, 2}, {[]string{}, 0}, {[]string{"default", "here"}, 1}} {
		if got := len(dnsServices(r, c.namespaces)); got != c.want {
			t.Errorf("namespaces %q: %d services, want %d", c.namespaces, got, c.want)
		}
	}
}

// The table stays what it is while names answer the same, and no longer.
func TestSameNames(t *testing.T) {
	clusterIP := &clustermesh.Import{Service: clustermesh.ServiceName{Namespace: "default", Name: "a"}, Type: clustermesh.ClusterSetIP}
	headless := &clustermesh.Import{Service: clustermesh.ServiceName{Namespace: "default", Name: "b"}, Type: clustermesh.Headless}
	ips := []netip.Addr{netip.MustParseAddr("10.96.0.1")}
	one := &plan.Import{Import: headless}
	for what, c := range map[string]struct {
		a, b []*plan.Import
		same bool
	}{
		"the same":                   {[]*plan.Import{one}, []*plan.Import{one}, true},
		"endpoints of a ClusterIP":   {[]*plan.Import{{Import: clusterIP, IPs: ips}}, []*plan.Import{{Import: clusterIP, IPs: ips}}, true},
		"its addresses":              {[]*plan.Import{{Import: clusterIP, IPs: ips}}, []*plan.Import{{Import: clusterIP}}, false},
		"endpoints of a headless":    {[]*plan.Import{one}, []*plan.Import{{Import: headless}}, false},
		"one more":                   {[]*plan.Import{one}, []*plan.Import{one, {Import: clusterIP}}, false},
		"an import that was changed": {[]*plan.Import{{Import: clusterIP}}, []*plan.Import{{Import: &clustermesh.Import{Service: clusterIP.Service}}}, false},
	} {
		if got := sameNames(c.a, c.b); got != c.same {
			t.Errorf("%s: same is %t", what, got)
		}
	}
}

// Only addresses that are of no network become the machine's own: any other is a mistake to report.
func TestGivenAddrs(t *testing.T) {
	var d DNSConfig
	for _, text := range []string{"169.254.20.11:53", "169.254.20.11:5353", "[fd00:53::11]:53", "10.0.0.1:53", "127.0.0.153:53", "0.0.0.0:53", "[2001:db8::1]:53", "[::]:53"} {
		d.Listen = append(d.Listen, netip.MustParseAddrPort(text))
	}
	want := []netip.Addr{netip.MustParseAddr("169.254.20.11"), netip.MustParseAddr("fd00:53::11")}
	if got := d.givenAddrs(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A host name with capitals is the name of the Node as kubelet writes it.
func TestNodeName(t *testing.T) {
	for host, want := range map[string]string{"web-1": "web-1", "WEB-1": "web-1", "Web-1.Example.ORG\n": "web-1.example.org"} {
		if got := nodeName(host); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}

// What is ready has its name, also while it terminates: that is how Kubernetes publishes the
// addresses of a Service with publishNotReadyAddresses.
func TestNamesOfReadyEndpoints(t *testing.T) {
	e := func(host string, ready, terminating, dead bool) clustermesh.ClusterEndpoint {
		return clustermesh.ClusterEndpoint{Dead: dead, Endpoint: clustermesh.Endpoint{Hostname: host, Ready: ready, Terminating: terminating}}
	}
	var got []string
	for _, x := range dnsEndpoints([]clustermesh.ClusterEndpoint{
		e("ready", true, false, false), e("published", true, true, false), e("leaving", false, true, false), e("unready", false, false, false), e("dead", true, false, true),
	}) {
		got = append(got, x.Hostname)
	}
	if !slices.Equal(got, []string{"ready", "published"}) {
		t.Errorf("names of %v", got)
	}
}
