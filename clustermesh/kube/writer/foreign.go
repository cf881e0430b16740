package writer

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/openapi"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/written"
)

// foreignKind is a kind of another API group with the fields of one of the MCS API. Such a kind is
// optional: whatever becomes of it, the MCS API's own are written.
type foreignKind struct {
	name  string // in package written
	watch func(t *term, f foreignKind) (*watch, error)
}

var foreignKinds = []foreignKind{
	{written.OldExport, watchForeign[oldExport]},
	{written.OldImport, watchForeign[oldImport]},
	{written.GKEImport, watchForeign[gkeImport]},
}

// row returns the kind's row, which it has, or it could not be written.
func (f foreignKind) row() written.Row {
	row, _ := written.Kind(f.name)
	return row
}

// The Go types of these kinds. The store tells kinds apart by their types.
type (
	oldExport struct {
		mcsv1beta1.ServiceExport `json:",inline"`
	}
	oldImport struct {
		mcsv1beta1.ServiceImport `json:",inline"`
	}
	gkeImport struct {
		mcsv1beta1.ServiceImport `json:",inline"`
	}
)

// DeepCopyObject implements runtime.Object.
func (o *oldExport) DeepCopyObject() runtime.Object { return &oldExport{*o.DeepCopy()} }

// DeepCopyObject implements runtime.Object.
func (o *oldImport) DeepCopyObject() runtime.Object { return &oldImport{*o.DeepCopy()} }

// DeepCopyObject implements runtime.Object.
func (o *gkeImport) DeepCopyObject() runtime.Object { return &gkeImport{*o.DeepCopy()} }

// foreignObject is a pointer to one of these types.
type foreignObject[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

// foreignList is a list of them.
type foreignList[T any, PT foreignObject[T]] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []T `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *foreignList[T, PT]) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]T, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *PT(&l.Items[i]).DeepCopyObject().(PT)
	}
	return &out
}

// watchForeign makes the watch of a kind.
func watchForeign[T any, PT foreignObject[T]](t *term, f foreignKind) (*watch, error) {
	row := f.row()
	client, err := reader[T, foreignList[T, PT], PT](t.REST, row.GroupVersionKind(), row.Resource.Resource)
	if err != nil {
		return nil, err
	}
	w := newWatch(t, row.Resource.GroupResource().String(), PT(new(T)), client, "")
	w.optional = f.name
	return w, nil
}

// servedForeign reads what the API server serves of these kinds.
func servedForeign(ctx context.Context, paths map[string]openapi.GroupVersionWithContext) (map[string]mcs.Served, error) {
	var out map[string]mcs.Served
	for _, f := range foreignKinds {
		s, is, err := read(ctx, paths, f.row().GroupVersionKind(), f.row().Resource.Resource)
		if err != nil {
			return nil, err
		}
		if is {
			if out == nil {
				out = map[string]mcs.Served{}
			}
			out[f.name] = s
		}
	}
	return out, nil
}

// known returns what is served, without the kinds that cannot be read: what is there is not known,
// so nothing of them is written.
func (t *term) known() mcs.API {
	out := t.api
	for _, w := range t.watches {
		if w.optional == "" || w.synced.Load() {
			continue
		}
		rest := map[string]mcs.Served{}
		for name, s := range out.Foreign {
			if name != w.optional {
				rest[name] = s
			}
		}
		out.Foreign = rest
	}
	return out
}
