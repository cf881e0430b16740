package api

import (
	"net/netip"
	"reflect"
	"testing"

	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// TestExports: each cluster that exports a service has a row, with its part of the endpoints and
// connections; an export that is not in force has one for its Problem, and the Problem of a Service
// that is not exported has none.
func TestExports(t *testing.T) {
	end := func(cluster, pod, addr string, ready bool, share float64) Endpoint {
		return Endpoint{Cluster: cluster, Pod: pod, Addr: netip.MustParseAddrPort(addr), Ready: ready, Share: share}
	}
	at := func(port uint16, ends ...Endpoint) Frontend {
		return Frontend{Addr: l4.New(netip.MustParseAddr("241.0.0.1"), port, l4.TCP), Endpoints: ends}
	}
	list := NewServiceList(Viewpoint{Cluster: "a"}, []Service{
		{Name: "x/both", Type: "ClusterSetIP", Exporters: []string{"b", "a"}, Frontends: []Frontend{
			at(80, end("a", "p", "10.0.0.1:80", true, 0.5), end("a", "q", "10.0.0.2:80", false, 0), end("b", "r", "10.1.0.1:80", true, 0.5)),
			at(81, end("a", "p", "10.0.0.1:81", true, 1), end("b", "r", "[fd00::1]:81", true, 0)),
		}},
		{Name: "x/peers", Type: "Headless", Exporters: []string{"b"}},
	})
	problemOf := func(r problem.Ref, message string) problem.Problem {
		return r.Problem(problem.Problem{Message: message})
	}
	lost := problemOf(problem.Object("ServiceExport", "x", "lost"), "has no Service")
	gke := problemOf(problem.Object("ServiceExport.net.gke.io", "x", "both"), "differs")
	service := problemOf(problem.Object("Service", "x", "both"), "has no ports")
	impossible := problem.Object("Service", "x", "portless").Problem(problem.Problem{Code: problem.ExportImpossible})
	elsewhere := problemOf(problem.Ref{Kind: "ServiceExport", Cluster: "b", Namespace: "x", Name: "peers"}, "is late")
	got := NewExportList(list, []problem.Problem{lost, gke, service, elsewhere, problemOf(problem.Object("Service", "x", "other"), "x"), impossible, problemOf(problem.Cluster("b"), "x")})
	want := []Export{
		{Name: "x/both", Cluster: "a", Type: "ClusterSetIP", Ready: 1, Total: 2, Share: 1, Problems: []problem.Problem{gke, service}},
		{Name: "x/both", Cluster: "b", Type: "ClusterSetIP", Ready: 1, Total: 1, Share: 0.5},
		{Name: "x/lost", Cluster: "a", Problems: []problem.Problem{lost}},
		{Name: "x/peers", Cluster: "b", Type: "Headless", Problems: []problem.Problem{elsewhere}},
		{Name: "x/portless", Cluster: "a", Problems: []problem.Problem{impossible}},
	}
	if !reflect.DeepEqual(got.Items, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got.Items, want)
	}
}
