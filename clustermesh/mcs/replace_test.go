package mcs

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/written"
)

func sliceAt(cluster string, addrs ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		discoveryv1.LabelServiceName: "derived-serve", mcsv1beta1.LabelSourceCluster: cluster,
	}}}
	for _, a := range addrs {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	return s
}

// Of a slice that is not wanted any more, only what a refused write should have taken over stays.
func TestRetire(t *testing.T) {
	old := sliceAt("c2", "10.0.0.1", "10.0.0.2")
	old.UID = "u"
	for what, c := range map[string]struct {
		failed []written.Op
		want   []string
	}{
		"nothing failed":         {nil, nil},
		"none of it moves":       {[]written.Op{{Verb: written.Create, Kind: written.EndpointSlice, Object: sliceAt("c2", "10.0.0.3")}}, nil},
		"one moves":              {[]written.Op{{Verb: written.Create, Kind: written.EndpointSlice, Object: sliceAt("c2", "10.0.0.2", "10.0.0.3")}}, []string{"10.0.0.2"}},
		"two writes":             {[]written.Op{{Verb: written.Create, Kind: written.EndpointSlice, Object: sliceAt("c2", "10.0.0.2")}, {Verb: written.Apply, Kind: written.EndpointSlice, Object: sliceAt("c2", "10.0.0.1")}}, []string{"10.0.0.1", "10.0.0.2"}},
		"of another cluster":     {[]written.Op{{Verb: written.Create, Kind: written.EndpointSlice, Object: sliceAt("c3", "10.0.0.2")}}, nil},
		"a deletion that failed": {[]written.Op{{Verb: written.Delete, Kind: written.EndpointSlice, Object: sliceAt("c2", "10.0.0.2")}}, nil},
		"a status and a Service": {[]written.Op{{Verb: written.ApplyStatus, Kind: written.ServiceImport, Object: &mcsv1beta1.ServiceImport{}}, {Verb: written.Create, Kind: written.Service, Object: &corev1.Service{}}}, nil},
		"an import's own, for it": {[]written.Op{{Verb: written.Create, Kind: written.EndpointSlice, Object: func() *discoveryv1.EndpointSlice {
			s := sliceAt("c2", "10.0.0.2")
			delete(s.Labels, discoveryv1.LabelServiceName)
			return s
		}()}}, nil},
	} {
		var got []string
		op, do := Retire(old, c.failed)
		for _, e := range op.Slice().Endpoints {
			got = append(got, e.Addresses...)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v stay, want %v", what, got, c.want)
		}
		if want := len(c.want) < len(old.Endpoints); do != want || (op.Verb == written.Delete) != (len(c.want) == 0) || op.Slice().UID != "u" {
			t.Errorf("%s: %t, %s", what, do, op)
		}
	}
	old.Labels["theirs"] = "x"
	old.OwnerReferences = []metav1.OwnerReference{{Kind: "ServiceImport", UID: "i"}, {Kind: "Other", UID: "o"}}
	op, _ := Retire(old, []written.Op{{Verb: written.Create, Kind: written.EndpointSlice, Object: sliceAt("c2", "10.0.0.2")}})
	if op.Slice().Labels["theirs"] != "" || len(op.Slice().Labels) != 2 || len(op.Slice().OwnerReferences) != 1 || op.Slice().OwnerReferences[0].UID != "i" {
		t.Errorf("it writes %+v, of which strait has written not all", op.Slice().ObjectMeta)
	}
}

// An updated slice keeps what a refused write should have taken over, if the listeners stay the same.
func TestShrink(t *testing.T) {
	have := sliceAt("c2", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	update := written.Op{Verb: written.Apply, Kind: written.EndpointSlice, Object: sliceAt("c2", "10.0.0.1"), Force: true}
	otherPort := func(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
		s.Ports = []discoveryv1.EndpointPort{{Port: new(int32(81))}}
		return s
	}
	for what, c := range map[string]struct {
		update written.Op
		failed []written.Op
		want   []string
	}{
		"nothing failed":     {update, nil, []string{"10.0.0.1"}},
		"none of it moves":   {update, []written.Op{{Verb: written.Create, Kind: written.EndpointSlice, Object: sliceAt("c2", "10.0.0.9")}}, []string{"10.0.0.1"}},
		"one moves":          {update, []written.Op{{Verb: written.Create, Kind: written.EndpointSlice, Object: sliceAt("c2", "10.0.0.2", "10.0.0.9")}}, []string{"10.0.0.1", "10.0.0.2"}},
		"it is in both":      {update, []written.Op{{Verb: written.Create, Kind: written.EndpointSlice, Object: sliceAt("c2", "10.0.0.1")}}, []string{"10.0.0.1"}},
		"of another cluster": {update, []written.Op{{Verb: written.Create, Kind: written.EndpointSlice, Object: sliceAt("c3", "10.0.0.2")}}, []string{"10.0.0.1"}},
		"to another port":    {update, []written.Op{{Verb: written.Create, Kind: written.EndpointSlice, Object: otherPort(sliceAt("c2", "10.0.0.2"))}}, []string{"10.0.0.1"}},
		"from another port":  {written.Op{Verb: written.Apply, Kind: written.EndpointSlice, Object: otherPort(sliceAt("c2", "10.0.0.1"))}, []written.Op{{Verb: written.Create, Kind: written.EndpointSlice, Object: sliceAt("c2", "10.0.0.2")}}, []string{"10.0.0.1"}},
		"a status":           {update, []written.Op{{Verb: written.ApplyStatus, Kind: written.ServiceImport, Object: &mcsv1beta1.ServiceImport{}}}, []string{"10.0.0.1"}},
	} {
		var got []string
		for _, e := range Shrink(have, c.update, c.failed).Slice().Endpoints {
			got = append(got, e.Addresses...)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: it has %v, want %v", what, got, c.want)
		}
	}
	if n := len(update.Slice().Endpoints); n != 1 {
		t.Errorf("the wanted slice, which others may have too, has %d endpoints now", n)
	}
}

// A Service waits for whatever may be of the next one; slices and imports, and what follows a
// refused status or deletion, do not wait.
func TestReplaces(t *testing.T) {
	service, slice, imp := &corev1.Service{}, &discoveryv1.EndpointSlice{}, &mcsv1beta1.ServiceImport{}
	for what, c := range map[string]struct {
		failed, deletion written.Op
		want             bool
	}{
		"the next Service":          {written.Op{Verb: written.Create, Kind: written.Service, Object: service}, written.Op{Verb: written.Delete, Kind: written.Service, Object: service}, true},
		"its slice":                 {written.Op{Verb: written.Create, Kind: written.EndpointSlice, Object: slice}, written.Op{Verb: written.Delete, Kind: written.Service, Object: service}, true},
		"the import that names it":  {written.Op{Verb: written.Apply, Kind: written.ServiceImport, Object: imp}, written.Op{Verb: written.Delete, Kind: written.Service, Object: service}, true},
		"the import's status":       {written.Op{Verb: written.ApplyStatus, Kind: written.ServiceImport, Object: imp}, written.Op{Verb: written.Delete, Kind: written.Service, Object: service}, false},
		"a slice that does not go":  {written.Op{Verb: written.Delete, Kind: written.EndpointSlice, Object: slice}, written.Op{Verb: written.Delete, Kind: written.Service, Object: service}, false},
		"an export's status":        {written.Op{Verb: written.ApplyStatus, Kind: written.ServiceExport, Object: &mcsv1beta1.ServiceExport{}}, written.Op{Verb: written.Delete, Kind: written.EndpointSlice, Object: slice}, false},
		"a Service, before a slice": {written.Op{Verb: written.Create, Kind: written.Service, Object: service}, written.Op{Verb: written.Delete, Kind: written.EndpointSlice, Object: slice}, false},
		"the end of an import":      {written.Op{Verb: written.Delete, Kind: written.Service, Object: service}, written.Op{Verb: written.Delete, Kind: written.ServiceImport, Object: imp}, false},
	} {
		if got := Replaces(c.failed, c.deletion); got != c.want {
			t.Errorf("%s: %t, want %t", what, got, c.want)
		}
	}
}
