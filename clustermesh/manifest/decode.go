package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	strictjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	"sigs.k8s.io/yaml"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
)

// apiVersions lists the kinds understood, with the apiVersions in which they are.
var apiVersions = map[string][]schema.GroupVersion{
	"Node":          {corev1.SchemeGroupVersion},
	"Namespace":     {corev1.SchemeGroupVersion},
	"Service":       {corev1.SchemeGroupVersion},
	"EndpointSlice": {discoveryv1.SchemeGroupVersion},
	"ServiceExport": {mcsv1beta1.SchemeGroupVersion, mcsv1alpha1.SchemeGroupVersion},
}

// clusterScoped kinds have no namespace.
var clusterScoped = map[string]bool{"Node": true, "Namespace": true}

var serializer = newSerializer()

// newSerializer knows no more types than strait understands.
func newSerializer() *strictjson.Serializer {
	s := runtime.NewScheme()
	s.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.Namespace{}, &corev1.Service{})
	s.AddKnownTypes(discoveryv1.SchemeGroupVersion, &discoveryv1.EndpointSlice{})
	s.AddKnownTypes(mcsv1alpha1.SchemeGroupVersion, &mcsv1alpha1.ServiceExport{})
	s.AddKnownTypes(mcsv1beta1.SchemeGroupVersion, &mcsv1beta1.ServiceExport{})
	return strictjson.NewSerializerWithOptions(strictjson.DefaultMetaFactory, s, s, strictjson.SerializerOptions{Strict: true})
}

// Decode reads the objects of one file: YAML or JSON, many documents, each an object or a List. Objects
// are *corev1.Node, *corev1.Namespace, *corev1.Service, *discoveryv1.EndpointSlice and
// *mcsv1beta1.ServiceExport (v1alpha1 converted); a missing namespace is "default". Decoding is strict:
// an unknown field, a key given twice or a value of the wrong type is a Problem, and its object is left
// out. Other kinds are left out with a warning. Pure; file only names the file in Problems.
func Decode(file string, data []byte) (objects []any, problems []clustermesh.Problem) {
	d := decoder{file: file}
	for _, doc := range split(data) {
		d.document(doc)
	}
	return d.objects, d.problems
}

// decoder collects what a file holds.
type decoder struct {
	file     string
	objects  []any
	problems []clustermesh.Problem
}

func (d *decoder) add(p clustermesh.Problem) {
	p.File = d.file
	p.Object, p.Field, p.Message = oneLine(p.Object), oneLine(p.Field), oneLine(p.Message)
	d.problems = append(d.problems, p)
}

func (d *decoder) document(doc document) {
	raw, err := yaml.YAMLToJSONStrict(doc.data)
	if err != nil {
		for _, p := range explainYAML(doc, err) {
			d.add(p)
		}
		return
	}
	d.object(raw, fmt.Sprintf("document at line %d", doc.line))
}

// header is what every object starts with, read leniently: strict decoding finds what is wrong with it.
type header struct {
	apiVersion, kind, namespace, name string
}

func readHeader(raw []byte) (h header, ok bool) {
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return h, false
	}
	h.apiVersion, _ = m["apiVersion"].(string)
	h.kind, _ = m["kind"].(string)
	meta, _ := m["metadata"].(map[string]any)
	h.namespace, _ = meta["namespace"].(string)
	h.name, _ = meta["name"].(string)
	return h, true
}

// title names the object to people, by its place in the file if it has no name.
func (h header) title(place string) string {
	if h.name == "" {
		return strings.TrimSpace(h.kind + " (" + place + ")")
	}
	namespace := h.namespace
	if apiVersions[h.kind] != nil && !clusterScoped[h.kind] {
		namespace = cmp.Or(namespace, metav1.NamespaceDefault)
	}
	return object.Name(cmp.Or(h.kind, "object"), namespace, h.name)
}

func (d *decoder) object(raw []byte, place string) {
	h, ok := readHeader(raw)
	bad := func(field, message, try string) {
		d.add(clustermesh.Problem{Object: h.title(place), Field: field, Message: message, Try: try})
	}
	switch {
	case !ok:
		bad("", "not a Kubernetes object", "write a mapping with apiVersion, kind and metadata")
		return
	case h.kind == "":
		bad("kind", "missing", "add the object's kind, such as Service")
		return
	case h.apiVersion == "":
		bad("apiVersion", "missing", "add the object's apiVersion, such as v1")
		return
	case h.kind == "List" && h.apiVersion == "v1":
		d.list(raw, h, place)
		return
	}
	gv, err := schema.ParseGroupVersion(h.apiVersion)
	versions := apiVersions[h.kind]
	switch {
	case len(versions) == 0 || foreign(gv, versions):
		d.add(clustermesh.Problem{Object: h.title(place), Field: "kind", Warning: true,
			Message: fmt.Sprintf("ignored: strait does not use %s of %s", h.kind, h.apiVersion)})
	case err != nil || !slices.Contains(versions, gv):
		bad("apiVersion", fmt.Sprintf("%q is no version of %s that strait reads", h.apiVersion, h.kind),
			"write "+versions[0].String())
	case h.name == "":
		bad("metadata.name", "missing", "give the object a name")
	default:
		d.typed(raw, h)
	}
}

// list reads the items of a "kind: List", as kubectl prints them.
func (d *decoder) list(raw []byte, h header, place string) {
	var strict struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ListMeta   `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := yaml.UnmarshalStrict(raw, &strict); err != nil {
		for _, p := range explain(h.title(place), err) {
			d.add(p)
		}
		return
	}
	for i, item := range strict.Items {
		d.object(item, fmt.Sprintf("%s, items[%d]", place, i))
	}
}

// typed decodes an object of a kind and version that strait reads.
func (d *decoder) typed(raw []byte, h header) {
	obj, _, err := serializer.Decode(raw, nil, nil)
	if err != nil {
		for _, p := range explain(h.title(""), err) {
			d.add(p)
		}
		return
	}
	if e, ok := obj.(*mcsv1alpha1.ServiceExport); ok {
		obj = &mcsv1beta1.ServiceExport{TypeMeta: e.TypeMeta, ObjectMeta: e.ObjectMeta,
			Spec: mcsv1beta1.ServiceExportSpec(e.Spec), Status: mcsv1beta1.ServiceExportStatus(e.Status)}
	}
	meta := obj.(metav1.Object)
	if meta.GetNamespace() == "" && !clusterScoped[h.kind] {
		meta.SetNamespace(metav1.NamespaceDefault)
	}
	d.objects = append(d.objects, obj)
}

// foreign reports a kind that only shares its name with one of strait's: Knative has a Service too. The
// group of the KEP's own examples, multicluster.k8s.io, is a mistake people make, not another kind.
func foreign(gv schema.GroupVersion, versions []schema.GroupVersion) bool {
	group := versions[0].Group
	return gv.Group != group && gv.Group != "" && gv.Group != "multicluster.k8s.io"
}
