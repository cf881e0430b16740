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

// store is what the API server has, by service. It takes in what the watches report, and the API
// server's answers to our own writes, which the watches show only later: without the answers, every
// write would be repeated until the watch had caught up. It keeps the part of each object that trim
// leaves.
type store struct {
	mu      sync.Mutex
	service map[clustermesh.ServiceName]*serviceObjects
	// of has the serviceObjects that each Service and slice belongs to. Labels alone are not enough: they
	// can change, and the store does not keep them all. An object that is gone may still be in here,
	// with serviceObjects that are no longer in service.
	of map[uid]*serviceObjects
	// deleted are objects that we deleted and that the watch has not reported deleted yet: until
	// then it can still report their last change.
	deleted map[types.UID]bool
	// passed are the versions up to which the watches have reported every change, by kind.
	passed map[reflect.Type]string
}

func newStore() *store {
	return &store{
		service: map[clustermesh.ServiceName]*serviceObjects{}, of: map[uid]*serviceObjects{}, deleted: map[types.UID]bool{}, passed: map[reflect.Type]string{},
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

// deleting marks an object before it is deleted; is=false removes the mark.
func (s *store) deleting(obj metav1.Object, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if is {
		s.deleted[obj.GetUID()] = true
	} else {
		delete(s.deleted, obj.GetUID())
	}
}

// answered takes in the API server's answer to a write. An answer that is no newer than what the
// watch has passed is ignored: the watch has reported that version, and may have reported since
// that the object is gone.
func (s *store) answered(obj metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if passed := s.passed[reflect.TypeOf(obj)]; passed == "" || newer(obj.GetResourceVersion(), passed) {
		s.take(obj)
	}
}

// changed stores an object that the watch reports as added or modified. It advances the watch's
// version in the same step: an answer that came in between would look outdated and be dropped, and
// the store would keep an older state.
func (s *store) changed(obj metav1.Object) []clustermesh.ServiceName {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(obj, obj.GetResourceVersion())
	return s.take(obj)
}

// gone removes an object that the watch reports as deleted, in one step for the same reason: an
// answer that came in between would bring it back.
func (s *store) gone(obj metav1.Object) []clustermesh.ServiceName {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(obj, obj.GetResourceVersion())
	delete(s.deleted, obj.GetUID())
	return s.lose(obj)
}

// listed records that the store holds all objects of a kind as of a version. kind is an example
// object of that kind.
func (s *store) listed(kind metav1.Object, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(kind, version)
}

// pass records the version that the watch of a kind has reached. The caller holds the lock.
func (s *store) pass(kind metav1.Object, version string) {
	if version != "" {
		s.passed[reflect.TypeOf(kind)] = version
	}
}

// put takes in an object, unless a later version of it is known or we deleted it. It returns the
// services to look at again: two if changed labels moved the object from one to the other.
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
		e = &serviceObjects{name: name}
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
	case *oldExport:
		e.takeForeign(obj, id, func() packed { return pack(obj) })
	case *oldImport:
		e.takeForeign(obj, id, func() packed { return pack(obj) })
	case *gkeImport:
		e.takeForeign(obj, id, func() packed { return pack(obj) })
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

// place inserts an item into a sorted list at an index, or replaces the older item there. Lists
// have no spare capacity, to save memory.
func place[T any](list []T, at int, there bool, item T) []T {
	if there {
		list[at] = item
		return list
	}
	return slices.Concat(list[:at], []T{item}, list[at:])
}

// drop forgets an object that is gone. An object of the same name with another UID stays. It
// returns the service to look at again.
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

// forget removes an object from a service. The lock is held.
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
	case *oldExport, *oldImport, *gkeImport:
		if kind := reflect.TypeOf(obj); e.foreign[kind].uid == id {
			delete(e.foreign, kind)
		}
	case *corev1.Service:
		e.services = slices.DeleteFunc(e.services, func(x service) bool { return x.uid == id })
	case *discoveryv1.EndpointSlice:
		e.slices = slices.DeleteFunc(e.slices, func(x slice) bool { return x.uid == id })
	}
	if e.imp.none() && e.exp.none() && len(e.services)+len(e.slices)+len(e.foreign) == 0 {
		delete(s.service, name)
	}
}

// missing returns the objects of a kind that are gone: they are not among those listed at a
// version. kind is an example object of that kind. Objects that we wrote after that version are not
// gone. Only the namespace, name and UID of what it returns are set.
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

// have returns what mcs.Diff compares its view with.
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
	if o := unpack[oldExport](e.foreign[reflect.TypeFor[*oldExport]()], name.Namespace, name.Name); o != nil {
		h.OldExport = &o.ServiceExport
	}
	if o := unpack[oldImport](e.foreign[reflect.TypeFor[*oldImport]()], name.Namespace, name.Name); o != nil {
		h.OldImport = &o.ServiceImport
	}
	if o := unpack[gkeImport](e.foreign[reflect.TypeFor[*gkeImport]()], name.Namespace, name.Name); o != nil {
		h.GKEImport = &o.ServiceImport
	}
	for _, x := range e.services {
		h.Services = append(h.Services, unpack[corev1.Service](x.packed, name.Namespace, x.name))
	}
	for _, x := range e.slices {
		h.Slices = append(h.Slices, x.slice())
	}
	return h
}

// setTrouble remembers how the last attempt to create the derived Service went.
func (s *store) setTrouble(name clustermesh.ServiceName, t mcs.Trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.service[name]; e != nil {
		e.trouble = t
	}
}

// taken returns the services whose own name is used by a Service that is not strait's.
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

// free notes that no Service uses a service's own name any more.
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
