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
	// of says whose Services and slices are: labels can change, and we do not keep all. What is gone may be of an entry that
	// is gone too.
	of map[uid]*entry
	// deleted are objects that we deleted, until the watch says so: before, it may still tell of their last change.
	deleted map[types.UID]bool
	// passed are the versions up to which the watches have told of every change, by kind.
	passed map[reflect.Type]string
}

func newStore() *store {
	return &store{
		service: map[clustermesh.ServiceName]*entry{}, of: map[uid]*entry{}, deleted: map[types.UID]bool{}, passed: map[reflect.Type]string{},
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

// changed takes in an object that the watch says was made or changed. No answer can come between the note of how far
// the watch is and the object: it would be thought old, and the store would be older.
func (s *store) changed(obj metav1.Object) []clustermesh.ServiceName {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(obj, obj.GetResourceVersion())
	return s.take(obj)
}

// gone forgets an object that the watch says is gone, in one step for the same reason: an answer that came between
// would bring it back.
func (s *store) gone(obj metav1.Object) []clustermesh.ServiceName {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(obj, obj.GetResourceVersion())
	delete(s.deleted, obj.GetUID())
	return s.lose(obj)
}

// listed notes that all objects of a kind, given by an example, were put as they are at a version.
func (s *store) listed(kind metav1.Object, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(kind, version)
}

// pass notes that the watch of a kind has come to a version. The lock is held.
func (s *store) pass(kind metav1.Object, version string) {
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
	id := identityOf(obj)
	if was := s.of[id.uid]; was != nil && (!ours || was.name != name) {
		s.forget(was.name, obj)
		news = append(news, was.name)
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
		e = &entry{name: name}
		s.service[name] = e
	}
	later := func(was identity) bool { return newer(obj.GetResourceVersion(), was.version.String()) }
	switch obj := obj.(type) {
	case *mcsv1beta1.ServiceImport:
		if e.imp.none() || later(e.imp.identity) {
			e.imp = pack(obj)
		}
	case *mcsv1beta1.ServiceExport:
		if e.exp.none() || later(e.exp.identity) {
			e.exp = pack(obj)
		}
	case *corev1.Service:
		s.of[id.uid] = e
		at, there := slices.BinarySearchFunc(e.services, obj.Name, func(x service, n string) int { return strings.Compare(x.name, n) })
		if !there || later(e.services[at].identity) {
			e.services = place(e.services, at, there, service{obj.Name, pack(obj)})
		}
	case *discoveryv1.EndpointSlice:
		s.of[id.uid] = e
		at, there := slices.BinarySearchFunc(e.slices, obj.Name, func(x slice, n string) int { return strings.Compare(x.name, n) })
		if !there || later(e.slices[at].identity) {
			e.slices = place(e.slices, at, there, sliceFrom(obj))
		}
	}
	return news
}

// place puts an item into a list at its place, or in the place of an older one. A list takes no more memory than it needs.
func place[T any](list []T, at int, there bool, item T) []T {
	if there {
		list[at] = item
		return list
	}
	return slices.Concat(list[:at], []T{item}, list[at:])
}

// drop forgets an object that is gone, unless another of its name has come since. It returns the service that this is
// news for.
func (s *store) drop(obj metav1.Object) []clustermesh.ServiceName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lose(obj)
}

// lose is drop with the lock held.
func (s *store) lose(obj metav1.Object) []clustermesh.ServiceName {
	name, ours := serviceOf(obj)
	if e := s.of[uidOf(obj.GetUID())]; e != nil {
		name, ours = e.name, true
	}
	if !ours {
		return nil
	}
	if s.service[name] == nil {
		return nil
	}
	s.forget(name, obj)
	return []clustermesh.ServiceName{name}
}

// forget takes an object from a service. The lock is held.
func (s *store) forget(name clustermesh.ServiceName, obj metav1.Object) {
	e, id := s.service[name], uidOf(obj.GetUID())
	delete(s.of, id)
	if e == nil {
		return
	}
	switch obj.(type) {
	case *mcsv1beta1.ServiceImport:
		if e.imp.uid == id {
			e.imp = packed{}
		}
	case *mcsv1beta1.ServiceExport:
		if e.exp.uid == id {
			e.exp = packed{}
		}
	case *corev1.Service:
		e.services = slices.DeleteFunc(e.services, func(x service) bool { return x.uid == id })
	case *discoveryv1.EndpointSlice:
		e.slices = slices.DeleteFunc(e.slices, func(x slice) bool { return x.uid == id })
	}
	if e.imp.none() && e.exp.none() && len(e.services)+len(e.slices) == 0 {
		delete(s.service, name)
	}
}

// missing returns the objects of a kind, given by an example, that are not among those listed at a version: they are gone.
// Those that we made later are not. Of each there is what drop reads.
func (s *store) missing(kind metav1.Object, listed map[types.UID]bool, version string) (gone []metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, e := range s.service {
		for n, have := range e.of(kind) {
			id := have.uid.UID()
			if id == "" || listed[id] || newer(have.version.String(), version) {
				continue
			}
			obj := reflect.New(reflect.TypeOf(kind).Elem()).Interface().(metav1.Object)
			obj.SetNamespace(name.Namespace)
			obj.SetName(n)
			obj.SetUID(id)
			gone = append(gone, obj)
		}
	}
	return gone
}

// have is what mcs.Diff compares with.
func (s *store) have(name clustermesh.ServiceName) mcs.Have {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.service[name]
	if e == nil {
		return mcs.Have{}
	}
	h := mcs.Have{
		Import:  unpack[mcsv1beta1.ServiceImport](e.imp, name.Namespace, name.Name),
		Export:  unpack[mcsv1beta1.ServiceExport](e.exp, name.Namespace, name.Name),
		Trouble: e.trouble,
	}
	for _, x := range e.services {
		h.Services = append(h.Services, unpack[corev1.Service](x.packed, name.Namespace, x.name))
	}
	for _, x := range e.slices {
		h.Slices = append(h.Slices, x.slice())
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

// taken are the services whose own name is somebody else's.
func (s *store) taken() (out []clustermesh.ServiceName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, e := range s.service {
		if e.trouble.OwnNameTaken {
			out = append(out, name)
		}
	}
	return out
}

// free says that a service's own name is nobody's any more.
func (s *store) free(name clustermesh.ServiceName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.service[name]; e != nil {
		e.trouble.OwnNameTaken = false
	}
}

func (s *store) names() []clustermesh.ServiceName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.service))
}
