package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	strictjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/yaml"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/internal/problem"
)

// kinds are the kinds that a file can hold, by their name in YAML.
var kinds = func() map[string]object.Kind {
	out := map[string]object.Kind{}
	for _, k := range object.Kinds {
		if k.InFiles {
			out[k.Name] = k
		}
	}
	return out
}()

var serializer = newSerializer(object.Scheme())

func newSerializer(s *runtime.Scheme) *strictjson.Serializer {
	return strictjson.NewSerializerWithOptions(strictjson.DefaultMetaFactory, s, s, strictjson.SerializerOptions{Strict: true})
}

// Object is what is kept of an object in a file, with its kind in YAML.
type Object struct {
	Kind string
	object.Kept
}

// Decode reads the objects of one file: YAML or JSON with any number of documents, each an object
// or a List. The objects are of the kinds in object.Kinds that files can hold; a missing namespace
// is "default". Decoding is strict: an unknown field, a key given twice or a value of the wrong
// type is a Problem, and its object is left out. Other kinds are left out with a warning. Pure;
// file only names the file in Problems.
func Decode(file string, data []byte) (objects []Object, problems []clustermesh.Problem) {
	d := decoder{file: file}
	for _, doc := range split(data) {
		d.document(doc)
	}
	return d.objects, d.problems
}

// decoder collects what a file holds.
type decoder struct {
	file     string
	objects  []Object
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

// header is what every object starts with, read leniently: strict decoding finds what is wrong with
// it.
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

// title names the object for people, by its place in the file if it has no name.
func (h header) title(place string) string {
	if h.name == "" {
		return strings.TrimSpace(h.kind + " (" + place + ")")
	}
	namespace := h.namespace
	if k, ok := kinds[h.kind]; ok && !k.ClusterScoped {
		namespace = cmp.Or(namespace, metav1.NamespaceDefault)
	}
	return object.Name(cmp.Or(h.kind, "object"), namespace, h.name)
}

func (d *decoder) object(raw []byte, place string) {
	h, ok := readHeader(raw)
	bad := func(code problem.Code, field, message, try string) {
		d.add(clustermesh.Problem{Code: code, Object: h.title(place), Field: field, Message: message, Try: try})
	}
	switch {
	case !ok:
		bad(problem.ObjectIncomplete, "", "not a Kubernetes object", "write a mapping with apiVersion, kind and metadata")
		return
	case h.kind == "":
		bad(problem.ObjectIncomplete, "kind", "missing", "add the object's kind, such as Service")
		return
	case h.apiVersion == "":
		bad(problem.ObjectIncomplete, "apiVersion", "missing", "add the object's apiVersion, such as v1")
		return
	case h.kind == "List" && h.apiVersion == "v1":
		d.list(raw, h, place)
		return
	}
	k, known := kinds[h.kind]
	gv, err := schema.ParseGroupVersion(h.apiVersion)
	switch {
	case !known || foreign(gv.Group, k.GroupResource().Group):
		d.add(clustermesh.Problem{Code: problem.KindIgnored, Object: h.title(place), Field: "kind", Warning: true,
			Message: fmt.Sprintf("ignored: strait does not use %s of %s", h.kind, h.apiVersion)})
	case err != nil || !slices.ContainsFunc(k.Versions, func(v object.Version) bool { return k.GroupVersion(v) == gv }):
		bad(problem.VersionUnknown, "apiVersion", fmt.Sprintf("%q is not a version of %s that strait reads", h.apiVersion, h.kind),
			"write "+k.GroupVersion(k.Versions[0]).String())
	case h.name == "":
		bad(problem.ObjectIncomplete, "metadata.name", "missing", "give the object a name")
	default:
		d.typed(raw, h, k)
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
func (d *decoder) typed(raw []byte, h header, k object.Kind) {
	decoded, _, err := serializer.Decode(raw, nil, nil)
	if err != nil {
		for _, p := range explain(h.title(""), err) {
			d.add(p)
		}
		return
	}
	meta := decoded.(metav1.Object)
	if meta.GetNamespace() == "" && !k.ClusterScoped {
		meta.SetNamespace(metav1.NamespaceDefault)
	}
	if kept, ok := k.Keep(meta, ""); ok && kept != nil {
		d.objects = append(d.objects, Object{k.Name, kept})
	}
}

// foreign reports whether a group only shares a kind's name with one of strait's: Knative has a
// Service too. multicluster.k8s.io, the group in the KEP's own examples, is a mistake that people
// make, not another kind.
func foreign(group, ours string) bool {
	return group != ours && group != "" && group != "multicluster.k8s.io"
}
