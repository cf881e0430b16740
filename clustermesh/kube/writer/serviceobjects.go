package writer

import (
	"reflect"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
)

// serviceObjects holds the objects of one service. Services and slices are few, and sorted by name.
type serviceObjects struct {
	name     clustermesh.ServiceName
	imp, exp packed                  // empty if there is none
	foreign  map[reflect.Type]packed // of other API groups, by Go type; nil if there are none
	services []service
	slices   []slice
	trouble  mcs.Trouble
}

// service is a Service and its name.
type service struct {
	name string
	packed
}

// slice is an mcs.Slice in compact form.
type slice struct {
	name string
	identity
	cluster unique.Handle[clustermesh.ClusterName]
	derived string
	global  bool
	owners  []uid
	sum     mcs.Sum
}

func sliceFrom(s *discoveryv1.EndpointSlice) slice {
	parsed := mcs.SliceFrom(s)
	out := slice{name: parsed.Name, identity: identityOf(s), cluster: unique.Make(parsed.Cluster), derived: parsed.Derived, global: parsed.Global, sum: parsed.Sum}
	for _, o := range parsed.Owners {
		out.owners = append(out.owners, uidOf(o))
	}
	return out
}

func (s slice) slice() mcs.Slice {
	out := mcs.Slice{Name: s.name, UID: s.uid.UID(), Cluster: s.cluster.Value(), Derived: s.derived, Global: s.global, Sum: s.sum}
	for _, o := range s.owners {
		out.Owners = append(out.Owners, o.UID())
	}
	return out
}

// of returns the objects of a kind by name. kind is an example object of that kind.
func (e *serviceObjects) of(kind metav1.Object) map[string]identity {
	out := map[string]identity{}
	switch kind.(type) {
	case *mcsv1beta1.ServiceImport:
		out[e.name.Name] = e.imp.identity
	case *mcsv1beta1.ServiceExport:
		out[e.name.Name] = e.exp.identity
	case *oldExport, *oldImport, *gkeImport:
		out[e.name.Name] = e.foreign[reflect.TypeOf(kind)].identity
	case *corev1.Service:
		for _, x := range e.services {
			out[x.name] = x.identity
		}
	default:
		for _, x := range e.slices {
			out[x.name] = x.identity
		}
	}
	return out
}

// takeForeign stores an object of another API group, unless a later version of it is known.
func (e *serviceObjects) takeForeign(obj metav1.Object, id identity, pack func() packed) {
	kind := reflect.TypeOf(obj)
	if was := e.foreign[kind]; !was.none() && !newer(obj.GetResourceVersion(), was.version.String()) {
		return
	}
	if e.foreign == nil {
		e.foreign = map[reflect.Type]packed{}
	}
	e.foreign[kind] = pack()
}
