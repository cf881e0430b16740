package mcs

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
)

// plannedGlobal is a global service that is there already.
type plannedGlobal struct{ g Global }

func (p plannedGlobal) Name() clustermesh.ServiceName { return p.g.Service }
func (p plannedGlobal) Make() Global                  { return p.g }
func (p plannedGlobal) Same(o Source[Global]) bool    { return reflect.DeepEqual(p.g, o.Make()) }

// memberOf returns an endpoint of a cluster, with a hostname if it is a StatefulSet's pod.
func memberOf(c clustermesh.ClusterName, addr, hostname string) clustermesh.ClusterEndpoint {
	return clustermesh.ClusterEndpoint{Cluster: c, Endpoint: clustermesh.Endpoint{
		Service: serve, Addr: netip.MustParseAddr(addr), Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}},
		Node: "n1", Zone: "z1", Hostname: hostname, Ready: true, Serving: true,
	}}
}

// asks adds a global service that asks for slices to a view.
func (v View) asks(endpoints ...clustermesh.ClusterEndpoint) View {
	v.Globals = []Source[Global]{plannedGlobal{Global{
		Service: serve, Slices: clustermesh.GlobalSlices{UID: "service-uid", Families: []clustermesh.Family{clustermesh.IPv4}}, Endpoints: endpoints,
	}}}
	return v
}

// globalSlices lists the slices of global services: "c2 10.2.0.1 web-0 ready".
func (w *world) globalSlices() (out []string) {
	for _, s := range w.slices {
		if !SliceFrom(s).Global {
			continue
		}
		for _, e := range s.Endpoints {
			out = append(out, strings.TrimSpace(fmt.Sprint(s.Labels[mcsv1beta1.LabelSourceCluster], " ", e.Addresses[0], " ", deref(e.Hostname), " ready=", *e.Conditions.Ready)))
		}
	}
	slices.Sort(out)
	return out
}

// A global Service that asks gets the other clusters' endpoints as slices of its own: of its
// families, and under hostnames that its own cluster's pods do not have.
func TestGlobalSlices(t *testing.T) {
	w := newWorld(t)
	dead := memberOf("c3", "10.3.0.1", "web-1")
	dead.Dead = true
	v := viewOf().asks(memberOf("c1", "10.1.0.1", "web-0"), memberOf("c2", "10.2.0.1", "web-0"), memberOf("c2", "10.2.0.2", "web-1"), memberOf("c2", "fd00::2", ""), dead)
	ops := w.settle(v, serve)
	want := []string{"c2 10.2.0.1  ready=true", "c2 10.2.0.2 web-1 ready=true", "c3 10.3.0.1 web-1 ready=false"}
	if got := w.globalSlices(); !slices.Equal(got, want) {
		t.Errorf("slices %q, want %q", got, want)
	}
	for _, s := range w.slices {
		owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Service", Name: "serve", UID: "service-uid"}
		if s.Labels[discoveryv1.LabelServiceName] != "serve" || s.Labels[discoveryv1.LabelManagedBy] != "strait.io" || !slices.Equal(s.OwnerReferences, []metav1.OwnerReference{owner}) {
			t.Errorf("slice %s: labels %v, owners %v", s.Name, s.Labels, s.OwnerReferences)
		}
		if e := s.Endpoints[0]; e.NodeName != nil || e.Hints != nil {
			t.Errorf("slice %s: node %v, hints %v of another cluster", s.Name, e.NodeName, e.Hints)
		}
	}
	if len(ops) != 2 || len(w.imports)+len(w.services) != 0 {
		t.Errorf("%d operations, imports %v, services %v", len(ops), w.imports, w.services)
	}
	// The Service was deleted and made again: the slices must go with the new one.
	v.Globals[0] = plannedGlobal{Global{Service: serve, Slices: clustermesh.GlobalSlices{UID: "next", Families: []clustermesh.Family{clustermesh.IPv4}}, Endpoints: []clustermesh.ClusterEndpoint{memberOf("c2", "10.2.0.2", "web-1")}}}
	w.settle(v, serve)
	for _, s := range w.slices {
		if s.OwnerReferences[0].UID != "next" {
			t.Errorf("slice %s: owner %v", s.Name, s.OwnerReferences)
		}
	}
	if got := w.globalSlices(); len(got) != 1 {
		t.Errorf("slices %q, want one", got)
	}
}

// Slices of a cluster that is not heard stay. If the Service does not ask any more, all go, no matter which
// clusters are heard; but not before it is known what the own cluster's Services ask for.
func TestGlobalSlices_Deleted(t *testing.T) {
	all := []clustermesh.ClusterEndpoint{memberOf("c2", "10.2.0.1", ""), memberOf("c3", "10.3.0.1", "")}
	for _, c := range []struct {
		what  string
		after func(View) View
		want  int
	}{
		{"a cluster is not heard, and its endpoints are not known", func(v View) View { v.Clusters["c3"] = Held; return v.asks(all[0]) }, 2},
		{"a cluster has none any more", func(v View) View { return v.asks(all[0]) }, 1},
		{"it does not ask", func(v View) View { v.Clusters["c3"] = Held; return v }, 0},
		{"the own cluster has not spoken", func(v View) View { v.Clusters["c1"] = Unknown; return v }, 2},
	} {
		w := newWorld(t)
		w.settle(viewOf().asks(all...), serve)
		w.settle(c.after(viewOf()), serve)
		if got := w.globalSlices(); len(got) != c.want {
			t.Errorf("%s: slices %q, want %d", c.what, got, c.want)
		}
	}
}

// A Service can be global and exported. Neither kind of slices touches the other's.
func TestGlobalSlices_BesideAnImport(t *testing.T) {
	w := newWorld(t)
	w.services["default/serve"] = theirs("serve")
	exported := viewOf(exportOf("c1", 1), exportOf("c2", 2)).change(pod("c2", "10.2.0.1", 8080))
	w.settle(exported, serve)
	before := maps.Clone(w.slices)
	w.settle(exported.asks(memberOf("c2", "10.2.0.1", "")), serve)
	if got := w.globalSlices(); len(before) != 2 || len(got) != 1 || len(w.slices) != 3 {
		t.Fatalf("%d slices before, then %d, of the global Service %q", len(before), len(w.slices), got)
	}
	w.settle(viewOf().asks(memberOf("c2", "10.2.0.1", "")), serve)
	if got := w.globalSlices(); len(got) != 1 || len(w.slices) != 1 {
		t.Errorf("not exported any more: %d slices, of the global Service %q", len(w.slices), got)
	}
	w.settle(exported, serve)
	if got := w.globalSlices(); len(got) != 0 || len(w.slices) != 2 {
		t.Errorf("not global any more: %d slices, of the global Service %q", len(w.slices), got)
	}
}

// kube-proxy uses hints only if all endpoints have them. Kubernetes gives them to the Service's
// own.
func TestGlobalSlices_Hints(t *testing.T) {
	w := newWorld(t)
	v := viewOf().asks(memberOf("c2", "10.2.0.1", ""))
	g := v.Globals[0].Make()
	g.TrafficDistribution = "PreferSameNode"
	v.Globals[0] = plannedGlobal{g}
	w.settle(v, serve)
	for _, s := range w.slices {
		if h := s.Endpoints[0].Hints; h == nil || len(h.ForNodes) != 1 || h.ForNodes[0].Name != "c2.clusterset.invalid" || h.ForZones[0].Name != "z1" {
			t.Errorf("hints %v", h)
		}
	}
	if len(w.slices) != 1 {
		t.Errorf("%d slices", len(w.slices))
	}
}
