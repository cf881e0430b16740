package object

import (
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"strait.io/strait/clustermesh"
)

// Need is what follows if an API server does not allow a kind to be read.
type Need uint8

const (
	// Required: without it the cluster is unknown.
	Required Need = iota
	// Useful: a Problem is reported, and the rest goes on.
	Useful
	// Optional: if the API server does not serve the kind, nothing follows.
	Optional
)

// Kind is a row of the table Kinds: what strait reads of one kind of object, and how.
type Kind struct {
	// Resource is the plural name and the group, as kubectl takes them: "nodes",
	// "endpointslices.discovery.k8s.io".
	Resource string
	// Name is the kind in YAML: "EndpointSlice".
	Name string
	// Versions are those that strait can read, the best first.
	Versions []Version
	// ClusterScoped kinds have no namespace.
	ClusterScoped bool
	Need          Need
	// Custom kinds are defined by a CustomResourceDefinition, so an API server may not serve them.
	Custom bool
	// Missing is what does not work while the API server does not serve the kind; Install is
	// what to do about it. Both are empty if the kind is Optional or not Custom.
	Missing, Install string
	// MetadataOnly kinds are read from an API server as *metav1.PartialObjectMetadata, whatever
	// Go types their versions have.
	MetadataOnly bool
	// InFiles is true if a directory of YAML can hold objects of the kind.
	InFiles bool
	// Labels and Annotations are the keys that count. All others are removed from an object before
	// it is read.
	Labels, Annotations []string
	// OtherAnnotations reports which annotations are kept besides; nil for none.
	OtherAnnotations func(key string) bool
	// AllLabels keeps every label, because users' policies select by any.
	AllLabels bool
	// Selector is the label selector for what an API server sends; empty for all.
	Selector string
	// NodeField is the field by which an API server selects the objects of the reader's own node;
	// empty for the objects of all nodes.
	NodeField string
}

// Version is a version of a kind.
type Version struct {
	Name string
	// Object and List are empty objects of the version's Go types. Without them, an API server's
	// objects are read as *unstructured.Unstructured.
	Object, List runtime.Object
	// keep returns what is kept of an object, and false if its Go type is not this version's.
	keep func(o metav1.Object, node clustermesh.NodeName) (Kept, bool)
}

// Kept is what is kept of an object: what Local, ReadPods and ReadIdentity read, and no more.
type Kept interface {
	GetNamespace() string
	GetName() string
	insert(*Objects)
}

// GroupResource returns Resource in two parts.
func (k *Kind) GroupResource() schema.GroupResource { return schema.ParseGroupResource(k.Resource) }

// GroupVersion returns the group with a version.
func (k *Kind) GroupVersion(v Version) schema.GroupVersion {
	return schema.GroupVersion{Group: k.GroupResource().Group, Version: v.Name}
}

// Keep returns what is kept of an object, or nil to drop the object. It may change the object, and
// retains parts of it. If node is not empty, what concerns other nodes is left out. An object that
// was kept before is returned as it is. ok is false if the object is of another kind.
func (k *Kind) Keep(o any, node clustermesh.NodeName) (kept Kept, ok bool) {
	if kept, ok = o.(Kept); ok {
		return kept, true
	}
	whole, ok := o.(metav1.Object)
	if !ok {
		return nil, false
	}
	for _, v := range k.Versions {
		if kept, ok = v.keep(k.trim(whole), node); ok {
			return kept, true
		}
	}
	return nil, false
}

// trim removes the labels and annotations that the row does not list. It does so for every source,
// so code that reads an unlisted key works with none of them.
func (k *Kind) trim(o metav1.Object) metav1.Object {
	if !k.AllLabels {
		o.SetLabels(only(o.GetLabels(), k.Labels))
	}
	if k.OtherAnnotations == nil {
		o.SetAnnotations(only(o.GetAnnotations(), k.Annotations))
		return o
	}
	o.SetAnnotations(where(o.GetAnnotations(), func(key string) bool { return slices.Contains(k.Annotations, key) || k.OtherAnnotations(key) }))
	return o
}

// only returns the entries with the given keys, nil if there are none.
func only(in map[string]string, keys []string) (out map[string]string) {
	for _, k := range keys {
		v, ok := in[k]
		if !ok {
			continue
		}
		if out == nil {
			out = make(map[string]string, 1)
		}
		out[k] = v
	}
	return out
}

// where returns the entries whose keys pass, nil if there are none.
func where(in map[string]string, pass func(key string) bool) (out map[string]string) {
	for k, v := range in {
		if !pass(k) {
			continue
		}
		if out == nil {
			out = make(map[string]string, len(in))
		}
		out[k] = v
	}
	return out
}

// keeping makes a version's keep from a function for its Go type.
func keeping[T metav1.Object, K Kept](from func(T) K) func(metav1.Object, clustermesh.NodeName) (Kept, bool) {
	return keepingFor(func(o T, _ clustermesh.NodeName) Kept { return from(o) })
}

// keepingFor is like keeping, for a kind of which different nodes keep different parts. The
// function returns nil to keep nothing.
func keepingFor[T metav1.Object](from func(T, clustermesh.NodeName) Kept) func(metav1.Object, clustermesh.NodeName) (Kept, bool) {
	return func(o metav1.Object, node clustermesh.NodeName) (Kept, bool) {
		typed, ok := o.(T)
		if !ok {
			return nil, false
		}
		return from(typed, node), true
	}
}

// Scheme returns a scheme with the Go types of all kinds and of their lists.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, k := range Kinds {
		for _, v := range k.Versions {
			if v.Object != nil {
				s.AddKnownTypeWithName(k.GroupVersion(v).WithKind(k.Name), v.Object)
				s.AddKnownTypeWithName(k.GroupVersion(v).WithKind(k.Name+"List"), v.List)
			}
		}
	}
	return s
}

// ID identifies an object among those of its kind.
type ID struct{ Namespace, Name string }

// GetNamespace is like that of metav1.Object.
func (i ID) GetNamespace() string { return i.Namespace }

// GetName is like that of metav1.Object.
func (i ID) GetName() string { return i.Name }

func (i ID) service() clustermesh.ServiceName { return clustermesh.ServiceName(i) }

// idOf returns an object's ID. It interns the namespace, because there are few; names are many.
func idOf(o metav1.Object) ID { return ID{intern(o.GetNamespace()), o.GetName()} }

// intern returns one shared string for all equal ones. It is for strings that are few and repeat.
func intern[S ~string](s S) S { return unique.Make(s).Value() }
