package writer

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
)

// store is what the API server has, by service: as watched, and as it answered to our own writes, which the
// watch shows only later. Without the latter every write would be repeated until the watch has caught up. Of objects it
// keeps what trim leaves.
type store struct {
	mu      sync.Mutex
	service map[clustermesh.ServiceName]*entry
	// of says whose Services and slices are: labels can change, and we do not keep all.
	of map[types.UID]clustermesh.ServiceName
	// deleted are objects that we deleted, until the watch says so: before, it may still tell of their last change.
	deleted map[types.UID]bool
	// passed are the versions up to which the watches have told of every change, by kind.
	passed map[reflect.Type]string
}

// entry is one service's objects. Services and slices are few, sorted by name.
type entry struct {
	imp, exp packed // with an empty UID where there is none
	services []packed
	slices   []slice
	trouble  mcs.Trouble
}

// slice is an EndpointSlice with its resource version.
type slice struct {
	mcs.Slice
	version string
}

func newStore() *store {
	return &store{
		service: map[clustermesh.ServiceName]*entry{}, of: map[types.UID]clustermesh.ServiceName{}, deleted: map[types.UID]bool{},
		passed: map[reflect.Type]string{},
	}
}

// serviceOf returns the service that an object belongs to.
func serviceOf(obj metav1.Object) (clustermesh.ServiceName, bool) {
	switch obj := obj.(type) {
	case *corev1.Service:
		return mcs.ServiceOf(obj)
	case *discoveryv1.EndpointSlice:
		return mcs.SliceOf(obj)
	}
	return clustermesh.ServiceName{Namespace: obj.GetNamespace(), Name: obj.GetName()}, true
}

// deleting marks an object before it is deleted, or with false takes that back.
func (s *store) deleting(obj metav1.Object, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if is {
		s.deleted[obj.GetUID()] = true
	} else {
		delete(s.deleted, obj.GetUID())
	}
}

// answered takes in what the API server answered to a write. What the watch has passed is no news: it has told of it, and
// may have told since that the object is gone.
func (s *store) answered(obj metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if passed := s.passed[reflect.TypeOf(obj)]; passed == "" || newer(obj.GetResourceVersion(), passed) {
		s.take(obj)
	}
}

// watched notes that the watch of a kind, given by an example, has come to a version. To be called before the change of that
// version is taken in: an answer that comes between must not outlive it.
func (s *store) watched(kind metav1.Object, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version != "" {
		s.passed[reflect.TypeOf(kind)] = version
	}
}

// put takes an object in, unless a later version of it is known or it was deleted. It returns the services that this
// is news for: of an object whose labels were changed two.
func (s *store) put(obj metav1.Object) []clustermesh.ServiceName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(obj)
}

// take is put with the lock held.
func (s *store) take(obj metav1.Object) []clustermesh.ServiceName {
	name, ours := serviceOf(obj)
	var news []clustermesh.ServiceName
	if was, known := s.of[obj.GetUID()]; known && (!ours || was != name) {
		s.forget(was, obj)
		news = append(news, was)
	}
	if !ours {
		return news
	}
	news = append(news, name)
	if s.deleted[obj.GetUID()] && obj.GetDeletionTimestamp() == nil {
		return news
	}
	e := s.service[name]
	if e == nil {
		e = &entry{}
		s.service[name] = e
	}
	switch obj := obj.(type) {
	case *mcsv1beta1.ServiceImport:
		if e.imp.uid == "" || newer(obj.ResourceVersion, e.imp.version) {
			e.imp = pack(obj)
		}
	case *mcsv1beta1.ServiceExport:
		if e.exp.uid == "" || newer(obj.ResourceVersion, e.exp.version) {
			e.exp = pack(obj)
		}
	case *corev1.Service:
		s.of[obj.UID] = name
		at, there := slices.BinarySearchFunc(e.services, obj.Name, func(x packed, n string) int { return strings.Compare(x.name, n) })
		e.services = keep(e.services, at, there, pack(obj), func(was packed) bool { return newer(obj.ResourceVersion, was.version) })
	case *discoveryv1.EndpointSlice:
		s.of[obj.UID] = name
		at, there := slices.BinarySearchFunc(e.slices, obj.Name, func(x slice, n string) int { return strings.Compare(x.Name, n) })
		e.slices = keep(e.slices, at, there, slice{mcs.SliceFrom(obj), obj.ResourceVersion}, func(was slice) bool { return newer(obj.ResourceVersion, was.version) })
	}
	return news
}

// keep puts an item into a list at its place, or in the place of an older one.
func keep[T any](list []T, at int, there bool, item T, newer func(T) bool) []T {
	switch {
	case !there:
		return slices.Insert(list, at, item)
	case newer(list[at]):
		list[at] = item
	}
	return list
}

// drop forgets an object that is gone, unless another of its name has come since. It returns the service that this is
// news for.
func (s *store) drop(obj metav1.Object) []clustermesh.ServiceName {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, known := s.of[obj.GetUID()]
	if !known {
		var ours bool
		if name, ours = serviceOf(obj); !ours {
			return nil
		}
	}
	if s.service[name] == nil {
		return nil
	}
	s.forget(name, obj)
	return []clustermesh.ServiceName{name}
}

// forget takes an object from a service. The lock is held.
func (s *store) forget(name clustermesh.ServiceName, obj metav1.Object) {
	e, uid := s.service[name], obj.GetUID()
	delete(s.of, uid)
	if e == nil {
		return
	}
	switch obj.(type) {
	case *mcsv1beta1.ServiceImport:
		if e.imp.uid == uid {
			e.imp = packed{}
		}
	case *mcsv1beta1.ServiceExport:
		if e.exp.uid == uid {
			e.exp = packed{}
		}
	case *corev1.Service:
		e.services = slices.DeleteFunc(e.services, func(x packed) bool { return x.uid == uid })
	case *discoveryv1.EndpointSlice:
		e.slices = slices.DeleteFunc(e.slices, func(x slice) bool { return x.UID == uid })
	}
	if e.imp.uid == "" && e.exp.uid == "" && len(e.services)+len(e.slices) == 0 {
		delete(s.service, name)
	}
}

// missing returns the objects of a kind, given by an example, that are not among those listed at a version: they are gone.
// Those that we made later are not. Of each there is what drop reads.
func (s *store) missing(kind metav1.Object, listed map[types.UID]bool, version string) (gone []metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, e := range s.service {
		for _, have := range e.of(kind) {
			if have.uid == "" || listed[have.uid] || newer(have.version, version) {
				continue
			}
			obj := reflect.New(reflect.TypeOf(kind).Elem()).Interface().(metav1.Object)
			obj.SetNamespace(name.Namespace)
			obj.SetName(have.name)
			obj.SetUID(have.uid)
			gone = append(gone, obj)
		}
	}
	return gone
}

// of are the objects of a kind, without what they say.
func (e *entry) of(kind metav1.Object) (out []packed) {
	switch kind.(type) {
	case *mcsv1beta1.ServiceImport:
		return []packed{e.imp}
	case *mcsv1beta1.ServiceExport:
		return []packed{e.exp}
	case *corev1.Service:
		return e.services
	}
	for _, x := range e.slices {
		out = append(out, packed{name: x.Name, uid: x.UID, version: x.version})
	}
	return out
}

// have is what mcs.Diff compares with.
func (s *store) have(name clustermesh.ServiceName) mcs.Have {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.service[name]
	if e == nil {
		return mcs.Have{}
	}
	h := mcs.Have{Import: unpack[mcsv1beta1.ServiceImport](e.imp), Export: unpack[mcsv1beta1.ServiceExport](e.exp), Trouble: e.trouble}
	for _, x := range e.services {
		h.Services = append(h.Services, unpack[corev1.Service](x))
	}
	for _, x := range e.slices {
		h.Slices = append(h.Slices, x.Slice)
	}
	return h
}

// setTrouble remembers why the derived Service could not be made, or that it was.
func (s *store) setTrouble(name clustermesh.ServiceName, t mcs.Trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.service[name]; e != nil {
		e.trouble = t
	}
}

func (s *store) names() []clustermesh.ServiceName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.service))
}

// newer compares resource versions of one kind. Versions that cannot be compared come from the watch in order.
func newer(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || c > 0
}
