package mcs

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
)

func TestPrune_NothingWhileAClusterIsUnknownOrHeld(t *testing.T) {
	for name, knowledge := range map[string]map[clustermesh.ClusterName]Knowledge{
		"held":                       {"c1": Current, "c2": Held},
		"heard but without a record": {"c1": Current, "c2": Unknown},
		"forgotten":                  {"c1": Current},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle(viewOf(exportOf("c1", 1), exportOf("c2", 2, func(e *clustermesh.Export) {
				e.Ports = []clustermesh.ServicePort{http, {Name: "more", Proto: http.Proto, Port: 81}}
			})).change(pod("c2", "10.2.0.1", 80)), serve)
			before := w.imports["default/serve"]
			for _, v := range []View{viewOf(exportOf("c1", 1)), viewOf()} {
				v.Clusters = knowledge
				ops := w.settle(v, serve)
				for _, o := range ops {
					if o.Verb == written.Delete {
						t.Errorf("%s", o)
					}
				}
				after := w.imports["default/serve"]
				if len(after.Spec.Ports) != len(before.Spec.Ports) || len(after.Status.Clusters) < 1 || len(w.slices) != 2 {
					t.Errorf("lost what it had: %+v %+v, %d slices", after.Spec, after.Status, len(w.slices))
				}
			}
			_, problems := Diff(View{Cluster: "c1", Clusters: knowledge}, serve, w.have(serve), start)
			if len(problems) != 1 || !strings.Contains(problems[0].Message, "c2") {
				t.Errorf("problems %v", problems)
			}
		})
	}
}

func TestPrune_WaitsForClustersThatNeverExported(t *testing.T) {
	w := newWorld(t)
	w.settle(viewOf(exportOf("c1", 1)), serve)
	v := viewOf()
	v.Clusters["c9"] = Unknown // it may have exported a moment ago
	if ops := w.settle(v, serve); len(ops) != 0 {
		t.Errorf("pruned: %v", ops)
	}
	v.Clusters["c9"] = Held // by its last record, it does not
	w.settle(v, serve)
	if len(w.imports) != 0 {
		t.Error("not pruned when all who can speak have")
	}
}

// TestPrune_WhatAnEvictedClusterExported: it is not waited for, although it is no longer heard, and
// may still be heard without a record.
func TestPrune_WhatAnEvictedClusterExported(t *testing.T) {
	for name, knowledge := range map[string]Knowledge{"not heard": Held, "heard but not believed": Unknown} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle(viewOf(exportOf("c1", 1), exportOf("c2", 2)).change(pod("c2", "10.2.0.1", 80)), serve)
			evicted := func(v View) View {
				v.Clusters = map[clustermesh.ClusterName]Knowledge{"c1": Current, "c2": knowledge}
				v.Members = []clustermesh.ClusterName{"c1"}
				return v
			}
			w.settle(evicted(viewOf(exportOf("c1", 1))), serve)
			if i := w.imports["default/serve"]; len(i.Status.Clusters) != 1 || len(w.slices) != 0 {
				t.Errorf("c1 still exports: status %+v, %d slices", i.Status.Clusters, len(w.slices))
			}
			w.settle(evicted(viewOf()), serve)
			if len(w.imports)+len(w.services)+len(w.slices) != 0 {
				t.Errorf("no cluster exports: %d imports, %d services, %d slices", len(w.imports), len(w.services), len(w.slices))
			}
		})
	}
}

// TestChanged_WhenAMemberIsEvicted: all objects are compared again.
func TestChanged_WhenAMemberIsEvicted(t *testing.T) {
	both, one := viewOf(exportOf("c1", 1)), viewOf(exportOf("c1", 1))
	both.Members, one.Members = []clustermesh.ClusterName{"c1", "c2"}, []clustermesh.ClusterName{"c1"}
	if len(Changed(both, one)) != 1 || !KnowsMore(both, one) || KnowsMore(one, one) {
		t.Errorf("changed: %v, knows more: %v", Changed(both, one), KnowsMore(both, one))
	}
}

func TestSlices_OfAHeldClusterStay(t *testing.T) {
	w := newWorld(t)
	v := viewOf(exportOf("c1", 1), exportOf("c2", 2))
	w.settle(v.change(pod("c2", "10.2.0.1", 80)), serve)
	v.Clusters["c2"] = Held
	for _, o := range w.settle(v.change(pod("c2", "10.2.0.2", 80)), serve) {
		if o.Slice() != nil && o.Slice().Labels[mcsv1beta1.LabelServiceName] != "" {
			t.Errorf("%s", o)
		}
	}
	// Where there is none yet, its last record is better than nothing.
	fresh := newWorld(t)
	fresh.settle(v.change(pod("c2", "10.2.0.2", 80)), serve)
	if got := sources(fresh); len(got) != 1 {
		t.Errorf("slices of %v", got)
	}
}

// What a cluster that is not known had stays in the derived Service's slices too; those that are
// known are followed.
func TestDerivedSlices_FollowTheClustersThatAreKnown(t *testing.T) {
	for name, c := range map[string]struct {
		exports []clustermesh.ClusterExport // of those that are known
		pods    []func(*Import)
		older   bool // slices as older versions wrote them, which name no cluster
		want    string
	}{
		"a pod is another":  {exports: []clustermesh.ClusterExport{exportOf("c1", 1)}, pods: []func(*Import){pod("c1", "10.1.0.9", 80)}, want: "10.1.0.9 10.3.0.1"},
		"no pod is left":    {exports: []clustermesh.ClusterExport{exportOf("c1", 1)}, want: "10.3.0.1"},
		"another exports":   {exports: []clustermesh.ClusterExport{exportOf("c2", 9)}, pods: []func(*Import){pod("c2", "10.2.0.1", 80)}, want: "10.2.0.1 10.3.0.1"},
		"no exports":        {want: "10.3.0.1"},
		"an older strait's": {exports: []clustermesh.ClusterExport{exportOf("c1", 1)}, older: true, want: "10.1.0.1 10.3.0.1"},
	} {
		for knowledge, k := range map[string]Knowledge{"unknown": Unknown, "held": Held, "forgotten": Current + 1} {
			t.Run(name+", "+knowledge, func(t *testing.T) {
				w := newWorld(t)
				w.settle(viewOf(exportOf("c1", 1), exportOf("c3", 3)).change(pod("c1", "10.1.0.1", 80)).change(pod("c3", "10.3.0.1", 80)), serve)
				if c.older {
					for _, s := range w.slices {
						delete(s.Labels, mcsv1beta1.LabelSourceCluster)
					}
				}
				before := w.imports["default/serve"].Spec
				v := viewOf(c.exports...)
				for _, f := range c.pods {
					v = v.change(f)
				}
				if v.Clusters["c3"] = k; k > Current {
					delete(v.Clusters, "c3")
				}
				w.settle(v, serve)
				got := strings.Join(derivedAddrs(w), " ")
				if i := w.imports["default/serve"]; i == nil || got != c.want || !reflect.DeepEqual(i.Spec, before) {
					t.Errorf("the derived Service has %s, want %s; import %+v, was %+v", got, c.want, i, before)
				}
				v.Clusters["c3"] = Current
				w.settle(v, serve)
				if got := derivedAddrs(w); slices.Contains(got, "10.3.0.1") || len(got) != len(c.pods) {
					t.Errorf("when c3 has withdrawn its export: %v", got)
				}
			})
		}
	}
}

// derivedAddrs are the endpoints of the derived Service, sorted.
func derivedAddrs(w *world) (out []string) {
	for _, s := range w.slices {
		if s.Labels[discoveryv1.LabelServiceName] != "" {
			for _, e := range s.Endpoints {
				out = append(out, e.Addresses[0])
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestUserImport_IsHonouredAndNotOurs(t *testing.T) {
	w := newWorld(t)
	theirs := &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "serve", UID: "u", Generation: 1, Labels: map[string]string{"mine": "1"}},
		Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Port: 80, Protocol: "TCP"}}},
	}
	w.imports["default/serve"] = theirs.DeepCopy()
	empty := viewOf()
	w.settle(empty, serve)
	if c := condition(w.imports["default/serve"].Status.Conditions, "Ready"); c.Status != metav1.ConditionFalse || c.Reason != "Pending" || len(w.services) != 0 {
		t.Errorf("without exports: %+v, services %v", c, w.services)
	}
	w.settle(viewOf(exportOf("c2", 1)).change(pod("c2", "10.2.0.1", 8080)), serve)
	i := w.imports["default/serve"]
	if len(i.Spec.IPs) != 1 || i.Annotations[DerivedAnnotation] != "derived-serve" || !OurImport(i) == false ||
		len(i.Spec.Ports) != 1 || i.Spec.Ports[0].Name != "" || i.Spec.SessionAffinity != "" {
		t.Errorf("import %+v", i)
	}
	for _, s := range w.slices {
		if s.Labels[mcsv1beta1.LabelServiceName] == "" && (*s.Ports[0].Name != "" || *s.Ports[0].Port != 8080) {
			t.Errorf("slice of the derived Service, whose port has no name: %+v", s.Ports)
		}
	}
	w.settle(empty, serve)
	i = w.imports["default/serve"]
	if i == nil || len(i.Spec.IPs) != 1 || len(w.services) != 1 || len(w.slices) != 0 {
		t.Errorf("after the unexport: import %+v, services %d, slices %d", i, len(w.services), len(w.slices))
	}
	for _, o := range w.writes {
		if ImportOf(o) != nil && (o.Verb == written.Delete || o.Verb == written.Apply && (o.Force || ImportOf(o).Spec.Type != "" || ImportOf(o).Labels != nil)) {
			t.Errorf("wrote too much of a user's import: %s %+v", o, ImportOf(o))
		}
	}
}

func TestUserImport_KeepsNothingOfOursInABarredNamespace(t *testing.T) {
	for name, c := range map[string]struct {
		theirs []string // ips of the user's own
		mode   IPMode
		want   []string
	}{
		"a derived Service":    {mode: IPsDerived},
		"an address of ours":   {mode: IPsCIDR},
		"an address of theirs": {mode: IPsDerived, theirs: []string{"192.0.2.1"}, want: []string{"192.0.2.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.imports["default/serve"] = &mcsv1beta1.ServiceImport{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "serve", UID: "u", Generation: 1},
				Spec: mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, IPs: c.theirs,
					Ports: []mcsv1beta1.ServicePort{{Port: 80, Protocol: "TCP"}}},
			}
			v := viewOf(exportOf("c2", 1), exportOf("c3", 2)).change(pod("c2", "10.2.0.1", 80)).change(pod("c3", "10.3.0.1", 80)).
				change(func(i *Import) { i.IPs = []netip.Addr{netip.MustParseAddr("241.0.0.9")} })
			v.Config.ClusterSetIPs = c.mode
			if c.theirs == nil {
				w.settle(v, serve)
				if i := w.imports["default/serve"]; len(i.Spec.IPs) != 1 || len(w.slices) == 0 {
					t.Fatalf("before: %+v, %d slices", i, len(w.slices))
				}
			}
			v.Config.Barred = clustermesh.Barred{"def*"}
			v.Clusters["c3"] = Unknown // whichever clusters are heard
			w.settle(v, serve)
			i := w.imports["default/serve"]
			if len(w.services)+len(w.slices) > 0 || !slices.Equal(i.Spec.IPs, c.want) || i.Annotations[DerivedAnnotation] != "" {
				t.Errorf("%d Services, %d slices, ips %v, annotations %v", len(w.services), len(w.slices), i.Spec.IPs, i.Annotations)
			}
			if s := i.Status; len(s.Clusters) != 0 || s.EndpointSliceObjects != "Absent" || !strings.Contains(condition(s.Conditions, "Ready").Message, "def*") {
				t.Errorf("status %+v", s)
			}
		})
	}
}

func TestGoingObjectsAreWaitedFor(t *testing.T) {
	w := newWorld(t)
	v := viewOf(exportOf("c2", 1))
	w.settle(v, serve)
	now := metav1.NewTime(start)
	w.imports["default/serve"].DeletionTimestamp = &now
	if ops := w.settle(v, serve); len(ops) != 0 {
		t.Errorf("wrote to an import that is being deleted: %v", ops)
	}
	w.imports["default/serve"].DeletionTimestamp = nil
	w.services["default/derived-serve"].DeletionTimestamp = &now
	if ops := w.settle(v, serve); len(ops) != 0 {
		t.Errorf("wrote to a Service that is being deleted: %v", ops)
	}
}

// An import that is being deleted can be kept for long by the finalizer of another program. As long
// as it is there, so are its addresses, and its slices follow the endpoints.
func TestGoingImport_SlicesFollowTheEndpoints(t *testing.T) {
	for name, c := range map[string]struct {
		finalizers []string
		now        View
		want       []string
	}{
		"a pod left and one came": {[]string{"example.org/hold"}, viewOf(exportOf("c2", 1)).change(pod("c2", "10.2.0.2", 8080)).change(pod("c2", "10.2.0.3", 8080)), []string{"10.2.0.2", "10.2.0.3"}},
		"no cluster exports":      {[]string{"example.org/hold"}, viewOf(), nil},
		"dependents go first":     {[]string{metav1.FinalizerDeleteDependents}, viewOf(), []string{"10.2.0.1", "10.2.0.2"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle(viewOf(exportOf("c2", 1)).change(pod("c2", "10.2.0.1", 8080)).change(pod("c2", "10.2.0.2", 8080)), serve)
			i := w.imports["default/serve"]
			i.DeletionTimestamp, i.Finalizers = new(metav1.NewTime(start)), c.finalizers
			for _, o := range w.settle(c.now, serve) {
				if o.Slice() == nil {
					t.Errorf("%s: written while the import is being deleted", o)
				}
			}
			for _, label := range []string{discoveryv1.LabelServiceName, mcsv1beta1.LabelServiceName} {
				var got []string
				for _, s := range w.slices {
					for _, e := range s.Endpoints {
						if s.Labels[label] != "" {
							got = append(got, e.Addresses...)
						}
					}
				}
				if slices.Sort(got); !slices.Equal(got, c.want) {
					t.Errorf("slices with the label %s: %v, want %v", label, got, c.want)
				}
			}
		})
	}
}
