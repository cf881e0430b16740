package mcs

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
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
		failed []Op
		want   []string
	}{
		"nothing failed":         {nil, nil},
		"none of it moves":       {[]Op{{Verb: Create, Slice: sliceAt("c2", "10.0.0.3")}}, nil},
		"one moves":              {[]Op{{Verb: Create, Slice: sliceAt("c2", "10.0.0.2", "10.0.0.3")}}, []string{"10.0.0.2"}},
		"two writes":             {[]Op{{Verb: Create, Slice: sliceAt("c2", "10.0.0.2")}, {Verb: Apply, Slice: sliceAt("c2", "10.0.0.1")}}, []string{"10.0.0.1", "10.0.0.2"}},
		"of another cluster":     {[]Op{{Verb: Create, Slice: sliceAt("c3", "10.0.0.2")}}, nil},
		"a deletion that failed": {[]Op{{Verb: Delete, Slice: sliceAt("c2", "10.0.0.2")}}, nil},
		"a status and a Service": {[]Op{{Verb: ApplyStatus, Import: &mcsv1beta1.ServiceImport{}}, {Verb: Create, Service: &corev1.Service{}}}, nil},
		"an import's own, for it": {[]Op{{Verb: Create, Slice: func() *discoveryv1.EndpointSlice {
			s := sliceAt("c2", "10.0.0.2")
			delete(s.Labels, discoveryv1.LabelServiceName)
			return s
		}()}}, nil},
	} {
		var got []string
		op, do := Retire(old, c.failed)
		for _, e := range op.Slice.Endpoints {
			got = append(got, e.Addresses...)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v stay, want %v", what, got, c.want)
		}
		if want := len(c.want) < len(old.Endpoints); do != want || (op.Verb == Delete) != (len(c.want) == 0) || op.Slice.UID != "u" {
			t.Errorf("%s: %t, %s", what, do, op)
		}
	}
	old.Labels["theirs"] = "x"
	old.OwnerReferences = []metav1.OwnerReference{{Kind: "ServiceImport", UID: "i"}, {Kind: "Other", UID: "o"}}
	op, _ := Retire(old, []Op{{Verb: Create, Slice: sliceAt("c2", "10.0.0.2")}})
	if op.Slice.Labels["theirs"] != "" || len(op.Slice.Labels) != 2 || len(op.Slice.OwnerReferences) != 1 || op.Slice.OwnerReferences[0].UID != "i" {
		t.Errorf("it writes %+v, of which strait has written not all", op.Slice.ObjectMeta)
	}
}

// An updated slice keeps what a refused write should have taken over, if the listeners stay the same.
func TestShrink(t *testing.T) {
	have := sliceAt("c2", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	update := Op{Verb: Apply, Slice: sliceAt("c2", "10.0.0.1"), Force: true}
	otherPort := func(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
		s.Ports = []discoveryv1.EndpointPort{{Port: new(int32(81))}}
		return s
	}
	for what, c := range map[string]struct {
		update Op
		failed []Op
		want   []string
	}{
		"nothing failed":     {update, nil, []string{"10.0.0.1"}},
		"none of it moves":   {update, []Op{{Verb: Create, Slice: sliceAt("c2", "10.0.0.9")}}, []string{"10.0.0.1"}},
		"one moves":          {update, []Op{{Verb: Create, Slice: sliceAt("c2", "10.0.0.2", "10.0.0.9")}}, []string{"10.0.0.1", "10.0.0.2"}},
		"it is in both":      {update, []Op{{Verb: Create, Slice: sliceAt("c2", "10.0.0.1")}}, []string{"10.0.0.1"}},
		"of another cluster": {update, []Op{{Verb: Create, Slice: sliceAt("c3", "10.0.0.2")}}, []string{"10.0.0.1"}},
		"to another port":    {update, []Op{{Verb: Create, Slice: otherPort(sliceAt("c2", "10.0.0.2"))}}, []string{"10.0.0.1"}},
		"from another port":  {Op{Verb: Apply, Slice: otherPort(sliceAt("c2", "10.0.0.1"))}, []Op{{Verb: Create, Slice: sliceAt("c2", "10.0.0.2")}}, []string{"10.0.0.1"}},
		"a status":           {update, []Op{{Verb: ApplyStatus, Import: &mcsv1beta1.ServiceImport{}}}, []string{"10.0.0.1"}},
	} {
		var got []string
		for _, e := range Shrink(have, c.update, c.failed).Slice.Endpoints {
			got = append(got, e.Addresses...)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: it has %v, want %v", what, got, c.want)
		}
	}
	if n := len(update.Slice.Endpoints); n != 1 {
		t.Errorf("the wanted slice, which others may have too, has %d endpoints now", n)
	}
}

// A Service waits for whatever may be of the next one; slices and imports, and what follows a
// refused status or deletion, do not wait.
func TestReplaces(t *testing.T) {
	service, slice, imp := &corev1.Service{}, &discoveryv1.EndpointSlice{}, &mcsv1beta1.ServiceImport{}
	for what, c := range map[string]struct {
		failed, deletion Op
		want             bool
	}{
		"the next Service":          {Op{Verb: Create, Service: service}, Op{Verb: Delete, Service: service}, true},
		"its slice":                 {Op{Verb: Create, Slice: slice}, Op{Verb: Delete, Service: service}, true},
		"the import that names it":  {Op{Verb: Apply, Import: imp}, Op{Verb: Delete, Service: service}, true},
		"the import's status":       {Op{Verb: ApplyStatus, Import: imp}, Op{Verb: Delete, Service: service}, false},
		"a slice that does not go":  {Op{Verb: Delete, Slice: slice}, Op{Verb: Delete, Service: service}, false},
		"an export's status":        {Op{Verb: ApplyStatus, Export: &mcsv1beta1.ServiceExport{}}, Op{Verb: Delete, Slice: slice}, false},
		"a Service, before a slice": {Op{Verb: Create, Service: service}, Op{Verb: Delete, Slice: slice}, false},
		"the end of an import":      {Op{Verb: Delete, Service: service}, Op{Verb: Delete, Import: imp}, false},
	} {
		if got := c.failed.Replaces(c.deletion); got != c.want {
			t.Errorf("%s: %t, want %t", what, got, c.want)
		}
	}
}
