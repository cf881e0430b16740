package mcs

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/problem"
)

// foreignWorld is an API server that serves kinds of other groups, with the schemas of mcs-api
// v0.1.0.
func foreignWorld(t failer, kinds ...string) *world {
	w := newWorld(t)
	w.api.Foreign = map[string]Served{}
	for _, k := range kinds {
		old := oldAPI(t)
		w.api.Foreign[k] = old.Imports
		if k == written.OldExport {
			w.api.Foreign[k] = old.Exports
		}
	}
	return w
}

// made stores an object of a user's or another controller's.
func (w *world) made(kind string, i *mcsv1beta1.ServiceImport) {
	i.Namespace, i.Name, i.UID, i.Generation = serve.Namespace, serve.Name, w.uid(), 1
	w.imports[kind+" "+serve.String()] = i
}

func (w *world) foreign(kind string) *mcsv1beta1.ServiceImport {
	return w.imports[kind+" "+serve.String()]
}

// statuses are the conditions of an export of the old group: "Valid=True".
func (w *world) statuses() string {
	var out []string
	for _, c := range w.exports[written.OldExport+" "+serve.String()].Status.Conditions {
		out = append(out, c.Type+"="+string(c.Status))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// An export of the old group gets the conditions that one of the MCS API would get, also beside
// one.
func TestOldExport_Conditions(t *testing.T) {
	w := foreignWorld(t, written.OldExport)
	w.exports[written.OldExport+" "+serve.String()] = &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: serve.Namespace, Name: serve.Name, UID: w.uid()}}
	other := func(e *clustermesh.Export) { e.AffinitySeconds = 9 }
	v := viewOf(exportOf("c1", 1), exportOf("c2", 2, other))
	e, _ := v.export(serve)
	e.Alias = written.OldExport
	v = v.judge(e)
	w.settle(v, serve)
	if got := w.statuses(); got != "Conflict=True Ready=True Valid=True" {
		t.Errorf("of an alias: %s", got)
	}
	about := serve.Ref(written.OldExport)
	v.Problems = map[clustermesh.ServiceName][]clustermesh.Problem{serve: {about.Problem(clustermesh.Problem{Message: "odd"}), about.Problem(clustermesh.Problem{Code: problem.ExportImpossible})}}
	if ps := v.EventProblems(serve, w.api); len(ps) != 1 || ps[0].Message != "odd" {
		t.Errorf("reported although conditions have it: %v", ps)
	}
	served := w.api.Foreign[written.OldExport]
	served.NoStatus = true
	if ps := v.EventProblems(serve, API{Foreign: map[string]Served{written.OldExport: served}}); len(ps) != 3 {
		t.Errorf("without a status subresource, reported only %v", ps)
	}

	e.Alias, e.Exported, e.Valid, e.Reason, e.Message = "", false, false, "NoService", "there is no Service"
	v = viewOf(exportOf("c2", 2)).judge(e)
	w.settle(v, serve)
	if got := w.statuses(); got != "Ready=False Valid=False" {
		t.Errorf("beside a ServiceExport: %s", got)
	}
}

// An import of the old group is the user's: strait writes addresses and status, and makes or
// deletes none.
func TestOldImport(t *testing.T) {
	w := foreignWorld(t, written.OldImport)
	v := viewOf(exportOf("c1", 1), exportOf("c2", 2))
	w.settle(v, serve)
	if w.foreign(written.OldImport) != nil {
		t.Fatalf("made: %+v", w.foreign(written.OldImport))
	}
	for _, kind := range []mcsv1beta1.ServiceImportType{mcsv1beta1.ClusterSetIP, ""} {
		w.made(written.OldImport, &mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{object.LabelManagedBy: object.ManagedBy}},
			Spec: mcsv1beta1.ServiceImportSpec{Type: kind, Ports: []mcsv1beta1.ServicePort{{Port: 1}}}})
		w.settle(v, serve)
		i := w.foreign(written.OldImport)
		if !slices.Equal(i.Spec.IPs, w.imports[serve.String()].Spec.IPs) || len(i.Spec.IPs) != 1 || i.Spec.Ports[0].Port != 1 || i.Spec.Type != kind || len(i.Status.Clusters) != 2 {
			t.Errorf("%q: %+v", kind, i)
		}
	}
	w.settle(viewOf(), serve)
	if i := w.foreign(written.OldImport); w.imports[serve.String()] != nil || i == nil || len(i.Spec.IPs) != 0 || len(i.Status.Clusters) != 0 {
		t.Errorf("after the last export: %+v", i)
	}
	w.made(written.OldImport, &mcsv1beta1.ServiceImport{Spec: mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.Headless}})
	w.settle(v, serve)
	if i := w.foreign(written.OldImport); len(i.Spec.IPs) != 0 || len(i.Status.Clusters) != 2 {
		t.Errorf("headless: %+v", i)
	}
}

// GKE's import is a copy of the import, comes after it, and goes with it.
func TestGKEImport(t *testing.T) {
	w := foreignWorld(t, written.GKEImport)
	v := viewOf(exportOf("c1", 1, func(e *clustermesh.Export) {
		e.Labels, e.Annotations = map[string]string{"team": "a"}, map[string]string{"note": "b", GKEDerivedAnnotation: "forged"}
	}))
	ops := w.settle(v, serve)
	i, own := w.foreign(written.GKEImport), w.imports[serve.String()]
	if !slices.Equal(i.Spec.IPs, own.Spec.IPs) || len(i.Spec.IPs) != 1 || i.Spec.Type != own.Spec.Type || !slices.Equal(i.Status.Clusters, own.Status.Clusters) {
		t.Errorf("%+v", i)
	}
	if want := map[string]string{"team": "a", object.LabelManagedBy: object.ManagedBy}; !maps.Equal(i.Labels, want) {
		t.Errorf("labels %v", i.Labels)
	}
	if want := map[string]string{"note": "b", GKEDerivedAnnotation: "derived-serve"}; !maps.Equal(i.Annotations, want) {
		t.Errorf("annotations %v", i.Annotations)
	}
	for _, o := range ops {
		if Foreign(o) && len(o.Events) > 0 {
			t.Errorf("%s repeats the import's Events: %v", o, o.Events)
		}
	}
	w.settle(viewOf(exportOf("c1", 1)), serve)
	if i := w.foreign(written.GKEImport); i.Labels["team"] != "" || i.Annotations["note"] != "" {
		t.Errorf("labels and annotations that are exported no more: %v %v", i.Labels, i.Annotations)
	}
	held := viewOf()
	held.Clusters = maps.Clone(held.Clusters)
	held.Clusters["c1"] = Held
	w.settle(held, serve)
	if w.foreign(written.GKEImport) == nil {
		t.Error("deleted although a cluster is not heard")
	}
	w.settle(viewOf(), serve)
	if i := w.foreign(written.GKEImport); i != nil {
		t.Errorf("outlives the import: %+v", i)
	}
}

// GKE's controller, or a user, has the name in GKE's group: nothing is written there.
func TestGKEImport_OfAnother(t *testing.T) {
	w := foreignWorld(t, written.GKEImport)
	w.made(written.GKEImport, &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{object.LabelManagedBy: "gke-mcs-controller.gke.io"}},
		Spec:       mcsv1beta1.ServiceImportSpec{IPs: []string{"34.118.229.70"}},
	})
	for _, v := range []View{viewOf(exportOf("c1", 1)), viewOf()} {
		for _, o := range w.settle(v, serve) {
			if Foreign(o) {
				t.Errorf("%s", o)
			}
		}
	}
}

// A refused import of another group keeps no Service from going.
func TestReplaces_OfAnotherGroup(t *testing.T) {
	o := written.Op{Verb: written.Create, Kind: written.GKEImport, Object: &mcsv1beta1.ServiceImport{}}
	deletion := written.Op{Verb: written.Delete, Kind: written.Service, Object: &corev1.Service{}}
	if Replaces(o, deletion) {
		t.Error("it does")
	}
	if o.Kind = written.ServiceImport; !Replaces(o, deletion) {
		t.Error("the import itself does not")
	}
}

// An item that would be refused without a field that the schema does not allow is left out.
func TestPrune_RequiredFields(t *testing.T) {
	text := schema{Enum: []any{"Ready", "Conflict"}}
	condition := &schema{Required: []string{"type"}, Properties: map[string]*schema{"type": &text, "status": everything, "reason": everything, "lastTransitionTime": everything}}
	status := &schema{Properties: map[string]*schema{"conditions": {Items: condition}}}
	e := &mcsv1beta1.ServiceExport{Status: mcsv1beta1.ServiceExportStatus{Conditions: []metav1.Condition{
		{Type: "Valid", Status: "True", Reason: "r"}, {Type: "Ready", Status: "True", Reason: "r"},
	}}}
	got := prune(Served{schema: &schema{Properties: map[string]*schema{"status": status}}}, e).Status.Conditions
	if len(got) != 1 || got[0].Type != "Ready" {
		t.Errorf("kept %+v", got)
	}
}
