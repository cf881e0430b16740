package objects

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

func TestView(t *testing.T) {
	serve := clustermesh.ServiceName{Namespace: "default", Name: "serve"}
	http := clustermesh.ServicePort{Name: "http", Proto: l4.TCP, Port: 80}
	export := clustermesh.Export{Service: serve, Type: clustermesh.ClusterSetIP, Ports: []clustermesh.ServicePort{http}, Families: []clustermesh.Family{clustermesh.IPv4}}
	pod := func(addr string, ready bool) clustermesh.Endpoint {
		return clustermesh.Endpoint{Service: serve, Addr: netip.MustParseAddr(addr), Node: "n1",
			Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}}, Ready: ready, Serving: ready}
	}
	state := func(ownReady bool) clustermesh.State {
		s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}, Contacts: clustermesh.ByOrigin[clustermesh.Contact]{}}
		for c, e := range map[clustermesh.ClusterName]clustermesh.Endpoint{"c1": pod("10.1.0.1", ownReady), "c2": pod("10.2.0.1", true)} {
			node := clustermesh.Origin{Cluster: c, Node: "n1"}
			s.Records = s.Records.With(clustermesh.Origin{Cluster: c}, clustermesh.Record{Content: clustermesh.Content{Exports: []clustermesh.Export{export}}})
			s.Records = s.Records.With(node, clustermesh.Record{Origin: node, Content: clustermesh.Content{
				Node:      &clustermesh.Node{Name: "n1", Locality: clustermesh.Locality{Zone: "zone-" + string(c)}},
				Endpoints: []clustermesh.Endpoint{e},
			}})
			s.Contacts = s.Contacts.With(node, clustermesh.Alive)
		}
		return s
	}
	view := func(ownReady bool, namespaces ...string) mcs.View {
		s := state(ownReady)
		result, _ := plan.Plan(plan.Inputs{State: s, Self: plan.Self{Cluster: "c1", Node: "n1"}}, plan.Past{})
		return View(mcs.Config{}, "c1", nil, clustermesh.Local{
			Namespaces:   namespaces,
			ExportStatus: []clustermesh.ExportStatus{{Service: serve, Valid: true, Exported: true, Reason: "Valid"}},
			Problems: []clustermesh.Problem{
				serve.Ref("Service").Problem(clustermesh.Problem{Message: "odd"}), serve.Ref("ServiceExport").Problem(clustermesh.Problem{Message: "there is no Service"}),
				problem.Object("Node", "", "n1").Problem(clustermesh.Problem{}),
				serve.Ref("ServiceExport").Problem(clustermesh.Problem{Field: `spec.exportedLabels["a"]`, Message: "left out"}),
				serve.Ref("ServiceExport.net.gke.io").Problem(clustermesh.Problem{Message: "alias"}), serve.Ref("ServiceImport").Problem(clustermesh.Problem{Field: "spec.ips"}),
				serve.Ref("ServiceImport.multicluster.k8s.io").Problem(clustermesh.Problem{Message: "barred"}),
			},
		}, s, result)
	}
	v := view(true, "default")
	i := v.Imports[0].Make()
	if len(i.Endpoints) != 2 || i.Endpoints[0].Zone == "" {
		t.Errorf("endpoints %+v", i.Endpoints)
	}
	if len(i.Backends) != 1 || i.Backends[0].Addr.String() != "10.1.0.1:8080" || i.Backends[0].Zone != "zone-c1" || i.Backends[0].Port != http {
		t.Errorf("the own cluster's pod while it is ready: %+v", i.Backends)
	}
	if b := view(false).Imports[0].Make().Backends; len(b) != 1 || b[0].Addr.String() != "10.2.0.1:8080" {
		t.Errorf("else the others': %+v", b)
	}
	if !reflect.DeepEqual(v.Namespaces, map[string]bool{"default": true}) || view(true).Namespaces != nil {
		t.Errorf("namespaces %v", v.Namespaces)
	}
	if ps := v.Problems[serve]; len(v.Problems) != 1 || len(ps) != 4 || ps[0].Message != "odd" || ps[1].Message != "left out" || ps[2].Message != "alias" || ps[3].Message != "barred" {
		t.Errorf("problems for Events: %+v", v.Problems)
	}
	if len(v.Imports) != 1 || !v.Exports[0].Exported || v.Clusters["c2"] != mcs.Current {
		t.Errorf("view %+v", v)
	}
}

// A global service's EndpointSlices list the endpoints of the clusters that share theirs with it, whether
// or not this cluster's clients would use them now. Who asks is not in the record.
func TestView_GlobalSlices(t *testing.T) {
	serve := clustermesh.ServiceName{Namespace: "default", Name: "serve"}
	http := clustermesh.ServicePort{Name: "http", Proto: l4.TCP, Port: 80}
	global := clustermesh.Global{Service: serve, Ports: []clustermesh.ServicePort{http}, Shared: true}
	s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}, Contacts: clustermesh.ByOrigin[clustermesh.Contact]{}}
	for c, addr := range map[clustermesh.ClusterName]string{"c1": "10.1.0.1", "c2": "10.2.0.1", "c3": "10.3.0.1"} {
		g, node := global, clustermesh.Origin{Cluster: c, Node: "n1"}
		g.Shared = c != "c3"
		s.Records = s.Records.With(clustermesh.Origin{Cluster: c}, clustermesh.Record{Content: clustermesh.Content{Globals: []clustermesh.Global{g}}})
		s.Records = s.Records.With(node, clustermesh.Record{Origin: node, Content: clustermesh.Content{Node: &clustermesh.Node{Name: "n1"}, Endpoints: []clustermesh.Endpoint{{
			Service: serve, Addr: netip.MustParseAddr(addr), Node: "n1", Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}}, Ready: true, Serving: true,
		}}}})
		s.Contacts = s.Contacts.With(node, clustermesh.Alive)
	}
	var past plan.Past
	view := func(slices *clustermesh.GlobalSlices) mcs.View {
		asks := global
		asks.Slices = slices
		var result plan.Result
		result, past = plan.Plan(plan.Inputs{State: s, Self: plan.Self{Cluster: "c1", Node: "n1"}}, past)
		return View(mcs.Config{}, "c1", nil, clustermesh.Local{Globals: []clustermesh.Global{asks}}, s, result)
	}
	before := view(&clustermesh.GlobalSlices{UID: "1"})
	if len(before.Globals) != 1 {
		t.Fatalf("global services %v", before.Globals)
	}
	var got []string
	g := before.Globals[0].Make()
	for _, e := range g.Endpoints {
		got = append(got, string(e.Cluster)+" "+e.Addr.String())
	}
	if want := []string{"c1 10.1.0.1", "c2 10.2.0.1"}; !slices.Equal(got, want) || g.Service != serve || g.Slices.UID != "1" {
		t.Errorf("%+v: endpoints %q, want %q", g, got, want)
	}
	for _, c := range []struct {
		what   string
		slices *clustermesh.GlobalSlices
		want   int
	}{{"the same", &clustermesh.GlobalSlices{UID: "1"}, 0}, {"made again", &clustermesh.GlobalSlices{UID: "2"}, 1}, {"not asked for", nil, 1}} {
		if got := mcs.Changed(before, view(c.slices)); len(got) != c.want {
			t.Errorf("%s: changed %v, want %d", c.what, got, c.want)
		}
	}
}
