package writer

import (
	"maps"
	"slices"
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
// watch shows only later. Without the latter every write would be repeated until the watch has caught up.
type store struct {
	mu      sync.Mutex
	service map[clustermesh.ServiceName]*entry
	// deleted are objects that we deleted, until the watch says so: before, it may still tell of their last change.
	deleted map[types.UID]bool
}

// entry is one service's objects. Slices and Services are by name.
type entry struct {
	imp      *mcsv1beta1.ServiceImport
	exp      *mcsv1beta1.ServiceExport
	services map[string]*corev1.Service
	slices   map[string]*discoveryv1.EndpointSlice
	trouble  mcs.Trouble
}

func newStore() *store {
	return &store{service: map[clustermesh.ServiceName]*entry{}, deleted: map[types.UID]bool{}}
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

// put takes an object in, unless a later version of it is known or it was deleted. It returns its service.
func (s *store) put(obj metav1.Object) (clustermesh.ServiceName, bool) {
	name, ours := serviceOf(obj)
	if !ours {
		return name, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deleted[obj.GetUID()] && obj.GetDeletionTimestamp() == nil {
		return name, true
	}
	e := s.service[name]
	if e == nil {
		e = &entry{services: map[string]*corev1.Service{}, slices: map[string]*discoveryv1.EndpointSlice{}}
		s.service[name] = e
	}
	switch obj := obj.(type) {
	case *mcsv1beta1.ServiceImport:
		if e.imp == nil || newer(obj, e.imp) {
			e.imp = obj
		}
	case *mcsv1beta1.ServiceExport:
		if e.exp == nil || newer(obj, e.exp) {
			e.exp = obj
		}
	case *corev1.Service:
		if have := e.services[obj.Name]; have == nil || newer(obj, have) {
			e.services[obj.Name] = obj
		}
	case *discoveryv1.EndpointSlice:
		if have := e.slices[obj.Name]; have == nil || newer(obj, have) {
			e.slices[obj.Name] = obj
		}
	}
	return name, true
}

// drop forgets an object that is gone, unless another of its name has come since.
func (s *store) drop(obj metav1.Object) (clustermesh.ServiceName, bool) {
	name, ours := serviceOf(obj)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.service[name]
	if !ours || e == nil {
		return name, false
	}
	switch obj := obj.(type) {
	case *mcsv1beta1.ServiceImport:
		if e.imp != nil && e.imp.UID == obj.UID {
			e.imp = nil
		}
	case *mcsv1beta1.ServiceExport:
		if e.exp != nil && e.exp.UID == obj.UID {
			e.exp = nil
		}
	case *corev1.Service:
		if have := e.services[obj.Name]; have != nil && have.UID == obj.UID {
			delete(e.services, obj.Name)
		}
	case *discoveryv1.EndpointSlice:
		if have := e.slices[obj.Name]; have != nil && have.UID == obj.UID {
			delete(e.slices, obj.Name)
		}
	}
	if e.imp == nil && e.exp == nil && len(e.services)+len(e.slices) == 0 {
		delete(s.service, name)
	}
	return name, true
}

// have is what mcs.Diff compares with.
func (s *store) have(name clustermesh.ServiceName) mcs.Have {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.service[name]
	if e == nil {
		return mcs.Have{}
	}
	h := mcs.Have{Import: e.imp, Export: e.exp, Trouble: e.trouble}
	for _, k := range slices.Sorted(maps.Keys(e.services)) {
		h.Services = append(h.Services, e.services[k])
	}
	for _, k := range slices.Sorted(maps.Keys(e.slices)) {
		h.Slices = append(h.Slices, e.slices[k])
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

// newer compares versions of objects of one kind. Versions that cannot be compared come from the watch in order.
func newer(a, b metav1.Object) bool {
	c, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err != nil || c > 0
}
