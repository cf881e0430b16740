package mcs

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// oldDocument is the OpenAPI document of the schemas of mcs-api v0.1.0, as far as ReadServed reads it.
func oldDocument(t failer) []byte {
	text, err := os.ReadFile("testdata/openapi-v0.1.0.json")
	if err != nil {
		t.Fatalf("%v", err)
	}
	return text
}

func oldAPI(t failer) (a API) {
	doc := oldDocument(t)
	for kind, out := range map[string]*Served{"serviceimports": &a.Imports, "serviceexports": &a.Exports} {
		name := map[string]string{"serviceimports": "ServiceImport", "serviceexports": "ServiceExport"}[kind]
		s, there, err := ReadServed("multicluster.x-k8s.io", "v1alpha1", name, kind, doc)
		if !there || err != nil || s.schema == nil {
			t.Fatalf("%s: %v %v %+v", kind, there, err, s)
		}
		*out = s
	}
	return a
}

func TestPruneToV010(t *testing.T) {
	a := oldAPI(t)
	full := &mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Name: "serve", Labels: map[string]string{"l": "1"}}}
	for part, into := range map[any]any{&fullSpec: &full.Spec, &fullStatus: &full.Status} {
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured((*part.(*any)).(map[string]any), into))
	}
	got := prune(a.Imports, full)
	if len(got.Spec.IPs) != 1 || got.Spec.IPFamilies != nil || got.Spec.TrafficDistribution != nil || got.Spec.InternalTrafficPolicy != nil ||
		got.Status.Conditions != nil || got.Status.EndpointSliceObjects != "" {
		t.Errorf("kept %+v", got)
	}
	if !reflect.DeepEqual(got.Spec.Ports, full.Spec.Ports) || got.Spec.SessionAffinity != corev1.ServiceAffinityClientIP ||
		len(got.Status.Clusters) != 2 || got.Labels["l"] != "1" || got.Spec.Type != mcsv1beta1.ClusterSetIP {
		t.Errorf("lost something: %+v", got)
	}
	if got := strings.Join(a.Imports.Lacks(), " "); got != "spec.internalTrafficPolicy spec.ipFamilies spec.ips spec.trafficDistribution status.conditions status.endpointSliceObjects" {
		t.Errorf("lacks %s", got)
	}
	if again := prune(a.Imports, got); !reflect.DeepEqual(again, got) {
		t.Errorf("pruned again: %+v, want %+v", again, got)
	}
	e := &mcsv1beta1.ServiceExport{Status: mcsv1beta1.ServiceExportStatus{Conditions: []metav1.Condition{{
		Type: "Ready", Status: "True", Reason: "r", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(start.Local()),
	}}}}
	if got := prune(a.Exports, e); !slices.Equal(got.Status.Conditions, e.Status.Conditions) {
		t.Errorf("an export's conditions: %+v", got.Status.Conditions)
	}
	a.Exports.NoStatus = true
	if got := prune(a.Exports, e); got.Status.Conditions[0].ObservedGeneration != 0 {
		t.Errorf("without a status subresource: %+v", got.Status.Conditions)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An API server with the schemas of v0.1.0 drops and refuses much of what strait wants. Writing ends
// all the same.
func TestDiffSettlesWithV010(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		w.api = oldAPI(rt)
		if rapid.Bool().Draw(rt, "dual") {
			w.families = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		}
		foreign(w, rapid.Bool().Draw(rt, "user's import"))
		for range rapid.IntRange(1, 3).Draw(rt, "views") {
			v := drawView(rt)
			w.settle(v, serve)
			if ops := w.settle(v, serve); len(ops) > 0 {
				rt.Fatalf("after it settled: %v", ops)
			}
		}
	})
}

// What is pruned once stays as it is.
func TestPruneIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genSchema(3).Draw(t, "schema")
		value := genValue(3).Draw(t, "value")
		once, keep := s.prune(value)
		if !keep {
			return
		}
		if twice, keep := s.prune(once); !keep || !reflect.DeepEqual(once, twice) {
			t.Fatalf("once %v, twice %v (%v)", once, twice, keep)
		}
	})
}

func genSchema(depth int) *rapid.Generator[*schema] {
	return rapid.Custom(func(t *rapid.T) *schema {
		s := &schema{Preserve: rapid.Bool().Draw(t, "preserve")}
		if rapid.Bool().Draw(t, "additional") {
			s.AdditionalProperties = json.RawMessage(rapid.SampledFrom([]string{"true", "false", "{}", `{"maxItems":1}`}).Draw(t, "which"))
		}
		if rapid.Bool().Draw(t, "limited") {
			s.MaxItems = new(rapid.IntRange(0, 2).Draw(t, "max"))
		}
		if depth > 0 {
			s.Properties = rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), genSchema(depth-1), 0, 2).Draw(t, "properties")
			if rapid.Bool().Draw(t, "items") {
				s.Items = genSchema(depth-1).Draw(t, "of")
			}
		} else if rapid.Bool().Draw(t, "enum") {
			s.Enum = []any{"x"}
		}
		return s
	})
}

func genValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if depth > 0 {
			switch rapid.IntRange(0, 2).Draw(t, "shape") {
			case 0:
				return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), genValue(depth-1), 0, 3).Draw(t, "map")
			case 1:
				return rapid.SliceOfN(genValue(depth-1), 0, 3).Draw(t, "list")
			}
		}
		return rapid.SampledFrom([]any{"x", "y", int64(1), true}).Draw(t, "scalar")
	})
}

// FuzzReadServed: no document makes it panic, and what it reads can prune.
func FuzzReadServed(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add(oldDocument(f))
	f.Fuzz(func(_ *testing.T, doc []byte) {
		if s, there, err := ReadServed("multicluster.x-k8s.io", "v1alpha1", "ServiceImport", "serviceimports", doc); there && err == nil {
			prune(s, &mcsv1beta1.ServiceImport{Spec: mcsv1beta1.ServiceImportSpec{IPs: []string{"10.0.0.1"}, Ports: []mcsv1beta1.ServicePort{{Port: 1}}}})
		}
	})
}
