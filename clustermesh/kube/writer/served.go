package writer

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/problem"
)

const (
	// checkEvery is how often the leader checks which versions of the MCS API are served, and with
	// which schemas; awaitEvery is how often while one of its kinds is not served.
	checkEvery = 30 * time.Second
	awaitEvery = time.Second
)

// served reads what the API server serves of the MCS API, from its OpenAPI documents; false if it
// does not serve both kinds. An API server that does not show the documents is taken to serve the
// newest version.
func (w *Writer) served(ctx context.Context) (mcs.API, bool, error) {
	paths, err := openapi.NewClientWithContext(w.Core.REST()).PathsWithContext(ctx)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return mcs.API{}, true, nil
	}
	if err != nil {
		return mcs.API{}, false, err
	}
	var api mcs.API
	imports, err := best(ctx, paths, object.ImportResource, &api.Imports)
	if err != nil {
		return api, false, err
	}
	exports, err := best(ctx, paths, object.ExportResource, &api.Exports)
	if err != nil {
		return api, false, err
	}
	api.Foreign, err = servedForeign(ctx, paths)
	return api, imports && exports, err
}

// best reads the best version of a kind that is served into out; false if none is.
func best(ctx context.Context, paths map[string]openapi.GroupVersionWithContext, resource string, out *mcs.Served) (bool, error) {
	k := object.Kinds[slices.IndexFunc(object.Kinds, func(k object.Kind) bool { return k.Resource == resource })]
	for _, v := range k.Versions {
		found, is, err := read(ctx, paths, k.GroupVersion(v).WithKind(k.Name), k.GroupResource().Resource)
		if err != nil {
			return false, err
		}
		if is {
			*out = found
			return true, nil
		}
	}
	return false, nil
}

// read reads what is served of one version of a kind; false if it is not served.
func read(ctx context.Context, paths map[string]openapi.GroupVersionWithContext, kind schema.GroupVersionKind, plural string) (mcs.Served, bool, error) {
	path, there := paths["apis/"+kind.GroupVersion().String()]
	if !there {
		return mcs.Served{}, false, nil
	}
	doc, err := path.SchemaWithContext(ctx, runtime.ContentTypeJSON)
	if err != nil {
		return mcs.Served{}, false, err
	}
	return mcs.ReadServed(kind.Group, kind.Version, kind.Kind, plural, doc)
}

// await waits until the MCS API is served, and returns what is; false if ctx is done first.
func (w *Writer) await(ctx context.Context) (mcs.API, bool) {
	const about = "multicluster.x-k8s.io"
	for {
		api, there, err := w.served(ctx)
		switch {
		case ctx.Err() != nil:
			return api, false
		case there && err == nil:
			w.Report(about, lowered(api))
			return api, true
		}
		p := clustermesh.Problem{
			Code: problem.WriterCannotList, Object: "API server",
			Message: "it does not serve ServiceImports and ServiceExports: no ServiceImports are written",
			Try:     "install the CRDs of the Multi-Cluster Services API: strait install",
		}
		if err != nil {
			p.Message, p.Try = fmt.Sprintf("read the schemas of the MCS API: %v: no ServiceImports are written", err), "check that the API server can be reached"
		}
		w.Report(about, []clustermesh.Problem{p})
		select {
		case <-ctx.Done():
			return api, false
		case <-time.After(awaitEvery):
		}
	}
}

// lowered returns the Problem of a schema that does not have all that strait writes into imports.
func lowered(api mcs.API) []clustermesh.Problem {
	lacks := api.Imports.Lacks()
	if len(lacks) == 0 {
		return nil
	}
	return []clustermesh.Problem{problem.Object("CustomResourceDefinition", "", object.ImportResource).Problem(clustermesh.Problem{
		Code: problem.ImportLowered, Warning: true,
		Message: fmt.Sprintf("%s, the best version that is served, does not have the whole of %s: left out of imports", groupVersion(api.Imports).Version, strings.Join(lacks, ", ")),
		Try:     "strait upgrade --upgrade-crds; traffic is not affected",
	})}
}

// changes returns when something else is served than api. An API server that cannot be asked, or
// serves nothing, is no change: what to write then is not known.
func (w *Writer) changes(ctx context.Context, api mcs.API, lost <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-lost:
		case <-time.After(checkEvery):
		}
		now, there, err := w.served(ctx)
		if err == nil && there && !reflect.DeepEqual(now, api) {
			w.Log.Info("the served MCS API has changed", "imports", groupVersion(now.Imports).Version, "exports", groupVersion(now.Exports).Version)
			return
		}
		select { // a version that is gone is known to OpenAPI a little later
		case <-ctx.Done():
			return
		case <-time.After(awaitEvery):
		}
	}
}

func groupVersion(s mcs.Served) schema.GroupVersion {
	return schema.GroupVersion{Group: mcsv1beta1.GroupName, Version: cmp.Or(s.Version, mcsv1beta1.GroupVersion.Version)}
}

// servedKind returns what is served of a kind of the MCS API, or of another group.
func (t *term) servedKind(kind string) mcs.Served {
	if s, is := t.api.Foreign[kind]; is {
		return s
	}
	if kind == mcsv1beta1.ServiceExportKindName {
		return t.api.Exports
	}
	return t.api.Imports
}

// kindOf returns a kind in the version that is served.
func (t *term) kindOf(name string) schema.GroupVersionKind {
	row, _ := written.Kind(name) // without a row, the engine refuses to write it
	kind := row.GroupVersionKind()
	if kind.GroupVersion() == mcsVersion {
		kind.Version = groupVersion(t.servedKind(name)).Version
	}
	return kind
}

// reader lists and watches a kind of the MCS API. All versions have the same fields, so the types of
// v1beta1 read each of them.
func reader[T any, L any, PT interface {
	*T
	runtime.Object
	metav1.Object
}, PL interface {
	*L
	runtime.Object
}](cfg *rest.Config, kind schema.GroupVersionKind, plural string) (resource[PL], error) {
	s, gv := runtime.NewScheme(), kind.GroupVersion()
	s.AddKnownTypeWithName(kind, PT(new(T)))
	s.AddKnownTypeWithName(gv.WithKind(kind.Kind+"List"), PL(new(L)))
	metav1.AddToGroupVersion(s, gv)
	cfg = rest.CopyConfig(cfg)
	cfg.GroupVersion, cfg.APIPath = &gv, "/apis"
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(s).WithoutConversion()
	client, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make API client for %s: %w", plural, err)
	}
	return gentype.NewClientWithList[PT, PL](plural, client, metav1.ParameterCodec, "",
		func() PT { return new(T) }, func() PL { return new(L) }), nil
}
