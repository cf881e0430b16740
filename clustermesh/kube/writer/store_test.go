package writer

import (
	"reflect"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
)

func name(s string) clustermesh.ServiceName {
	return clustermesh.ServiceName{Namespace: "team", Name: s}
}

func importAt(n, uid, version string) *mcsv1beta1.ServiceImport {
	return &mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: n, UID: types.UID(uid), ResourceVersion: version}}
}

func sliceAt(of, uid, version string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "slice", UID: types.UID(uid), ResourceVersion: version,
		Labels: map[string]string{mcsv1beta1.LabelServiceName: of, discoveryv1.LabelManagedBy: object.SliceManager}}}
}

// A list shows what is gone, but not what was made after it.
func TestListSaysWhatIsGone(t *testing.T) {
	s := newStore()
	s.put(importAt("old", "1", "5"))
	s.put(importAt("listed", "2", "6"))
	s.put(importAt("ours", "3", "12"))
	s.put(sliceAt("old", "4", "7"))
	gone := s.missing(&mcsv1beta1.ServiceImport{}, map[types.UID]bool{"2": true}, "10")
	if len(gone) != 1 || gone[0].GetName() != "old" || gone[0].GetUID() != "1" {
		t.Fatalf("gone: %v", gone)
	}
	if news := s.gone(gone[0]); !reflect.DeepEqual(news, []clustermesh.ServiceName{name("old")}) {
		t.Errorf("news for %v", news)
	}
	if h := s.have(name("old")); h.Import != nil || len(h.Slices) != 1 {
		t.Errorf("of the service there is %+v: want its slice, of which there was no event", h)
	}
	if s.have(name("ours")).Import == nil {
		t.Error("what was made after the list is gone")
	}
}

// The answer to a write may be read after the watch has reported that a user deleted the object. The

// object does not come back by that.
func TestAnswerAfterTheObjectIsGone(t *testing.T) {
	s := newStore()
	s.listed(&mcsv1beta1.ServiceImport{}, "5")
	s.answered(importAt("a", "1", "6"))
	if s.have(name("a")).Import == nil {
		t.Fatal("an answer ahead of the watch is not taken in")
	}
	late := importAt("a", "1", "7")
	s.gone(importAt("a", "1", "8"))
	s.answered(late)
	if s.have(name("a")).Import != nil {
		t.Error("it is there again")
	}
	s.answered(importAt("a", "2", "9"))
	if i := s.have(name("a")).Import; i == nil || i.UID != "2" {
		t.Errorf("the next of its name is not taken in: %v", i)
	}
}

// TestAnswerBesideTheWatch: what the API server answered to a write is in the store once the answer was read, also when the watch
// tells of the same change at that moment. Otherwise the write is repeated.
func TestAnswerBesideTheWatch(t *testing.T) {
	w := &watch{term: &term{store: newStore()}, empty: &mcsv1beta1.ServiceImport{}}
	var watching sync.WaitGroup
	defer watching.Wait()
	const versions = 20_000
	watching.Go(func() {
		for v := range versions {
			_ = w.Update(importAt("a", "1", strconv.Itoa(v+1))) // never fails
		}
	})
	for v := range versions {
		version := strconv.Itoa(v + 1)
		w.term.store.answered(importAt("a", "1", version))
		if i := w.term.store.have(name("a")).Import; i == nil || newer(version, i.ResourceVersion) {
			t.Fatalf("version %s was answered, and the store has %v", version, i)
		}
	}
}

// A slice whose label was changed belongs to another service, and both are looked at; as are those of one that is not ours any more.
func TestLabelsOfASliceChange(t *testing.T) {
	s := newStore()
	s.put(sliceAt("a", "1", "5"))
	if news := s.put(sliceAt("b", "1", "6")); !reflect.DeepEqual(news, []clustermesh.ServiceName{name("a"), name("b")}) {
		t.Errorf("news for %v", news)
	}
	if len(s.have(name("a")).Slices) != 0 || len(s.have(name("b")).Slices) != 1 {
		t.Error("the slice is not where its label says")
	}
	stranger := sliceAt("b", "1", "7")
	stranger.Labels = nil
	if news := s.drop(stranger); !reflect.DeepEqual(news, []clustermesh.ServiceName{name("b")}) || len(s.have(name("b")).Slices) != 0 {
		t.Errorf("news for %v", news)
	}
	if len(s.service)+len(s.of) != 0 {
		t.Errorf("something is left: %v %v", s.service, s.of)
	}
}

// What is packed is what is unpacked, and an older version of it does not replace it.
func TestPacked(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "derived-a", UID: "1", ResourceVersion: "6", ManagedFields: created,
		Labels:          map[string]string{object.LabelManagedBy: object.ManagedBy, object.LabelServiceImport: "a"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ServiceImport", UID: "2"}}},
		Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.1"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}, InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyLocal)}}
	i := importAt("a", "2", "7")
	i.Generation, i.Labels = 3, map[string]string{"k": "v"}
	i.Spec.Ports = []mcsv1beta1.ServicePort{{Name: "http", Port: 80}}
	i.Status.Conditions = []metav1.Condition{{Type: "Ready", LastTransitionTime: metav1.Unix(7, 0)}}
	i.ManagedFields = metadataOnly([]metav1.ManagedFieldsEntry{fields(metav1.ManagedFieldsOperationApply, "")}, true)
	s := newStore()
	s.put(service)
	s.put(i)
	older := service.DeepCopy()
	older.ResourceVersion, older.Spec.Ports = "5", nil
	s.put(older)
	s.put(importAt("another", "3", "8"))
	s.have(name("another")) // what reads and writes the bytes is used again
	h := s.have(name("a"))
	if len(h.Services) != 1 || !equality.Semantic.DeepEqual(h.Services[0], service) {
		t.Errorf("service %+v", h.Services)
	}
	if !equality.Semantic.DeepEqual(h.Import, i) {
		t.Errorf("import %+v, want %+v", h.Import, i)
	}
}

// A list that comes object by object is never there whole; what it holds is there before its end, and what went meanwhile is
// gone after it.
func TestListIsTakenInAsItComes(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[clustermesh.ServiceName]())
	defer queue.ShutDown()
	w := &watch{term: &term{store: newStore(), queue: queue}, empty: &mcsv1beta1.ServiceImport{}}
	w.term.begun.Store(true) // the list is one of a watch that was broken
	w.put(importAt("old", "1", "5"))
	list := cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithTransformer(w.Transformer()))
	first, second, brief := importAt("first", "2", "6"), importAt("second", "3", "7"), importAt("brief", "4", "8")
	for _, o := range []*mcsv1beta1.ServiceImport{first, second, brief} {
		if err := list.Add(o); err != nil {
			t.Fatal(err)
		}
		if w.term.store.have(name(o.Name)).Import == nil {
			t.Errorf("%s is not there before the list is whole", o.Name)
		}
	}
	if err := list.Delete(brief); err != nil {
		t.Fatal(err)
	}
	for _, o := range list.List() {
		if _, whole := o.(metav1.Object); whole {
			t.Errorf("the list keeps %+v", o)
		}
	}
	// Where the API server cannot stream, all come whole.
	if err := w.Replace(append(list.List(), importAt("whole", "5", "9")), "10"); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[string]bool{"old": false, "first": true, "second": true, "brief": false, "whole": true} {
		if there := w.term.store.have(name(n)).Import != nil; there != want {
			t.Errorf("%s is there: %v", n, there)
		}
	}
	if queue.Len() != 5 || !w.synced.Load() {
		t.Errorf("%d services are to be looked at; synced %v", queue.Len(), w.synced.Load())
	}
}
