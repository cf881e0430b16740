package manifest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh/object"
)

const exportYAML = `apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata:
  name: serve
`

const serviceYAML = `apiVersion: v1
kind: Service
metadata:
  name: serve
spec:
  ports:
  - name: http
    port: 80
`

func keys(objects []Object) (out []string) {
	for _, o := range objects {
		out = append(out, keyOf(o).String())
	}
	return out
}

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		what, in string
		objects  []string
		problems []string // in order; each is the whole line
	}{
		{what: "nothing", in: ""},
		{what: "comments only", in: "# a\n---\n# b\n--- # c\n...\n%YAML 1.1\n"},
		{what: "one", in: exportYAML, objects: []string{"ServiceExport default/serve"}},
		{what: "many, CRLF and BOM", in: "\ufeff" + strings.ReplaceAll(exportYAML+"---\n"+serviceYAML, "\n", "\r\n"),
			objects: []string{"ServiceExport default/serve", "Service default/serve"}},
		{what: "content on the marker", in: "--- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n--- # x\n" + serviceYAML,
			objects: []string{"Node n1", "Service default/serve"}},
		{what: "after an end marker", in: serviceYAML + "...\n" + exportYAML,
			objects: []string{"Service default/serve", "ServiceExport default/serve"}},
		{what: "a directive", in: "%YAML 1.1\n---\n" + serviceYAML, objects: []string{"Service default/serve"}},
		{what: "v1alpha1", in: strings.Replace(exportYAML, "v1beta1", "v1alpha1", 1), objects: []string{"ServiceExport default/serve"}},
		{what: "JSON with tabs", in: "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Namespace\",\n\t\"metadata\": {\"name\": \"a\"}\n}\n",
			objects: []string{"Namespace a"}},
		{what: "JSON stream", in: `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}}`,
			objects: []string{"Node a", "Node b"}},
		{what: "list", in: "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: \"\"}\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: a}}\n" +
			"- {apiVersion: v1, kind: Service, metadata: {name: b, namespace: x}}\n- {apiVersion: v1, kind: Pod, metadata: {name: c}}\n",
			objects:  []string{"Node a", "Service x/b"},
			problems: []string{"f: Pod c: kind: ignored: strait does not use Pod of v1"}},
		{what: "other kinds", in: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n---\n" +
			"apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: k}\n---\n" + exportYAML,
			objects: []string{"ServiceExport default/serve"},
			problems: []string{"f: Deployment d: kind: ignored: strait does not use Deployment of apps/v1",
				"f: Service default/k: kind: ignored: strait does not use Service of serving.knative.dev/v1"}},
		{what: "unknown field", in: exportYAML + "---\n" + strings.Replace(serviceYAML, "port: 80", "prot: 80", 1),
			objects:  []string{"ServiceExport default/serve"},
			problems: []string{`f: Service default/serve: spec.ports[0].prot: unknown field; correct its name or remove it`}},
		{what: "two unknown fields", in: serviceYAML + "  a: 1\nb: 2\n",
			problems: []string{`f: Service default/serve: b: unknown field; correct its name or remove it`,
				`f: Service default/serve: spec.a: unknown field; correct its name or remove it`}},
		{what: "wrong case", in: strings.Replace(serviceYAML, "ports:", "Ports:", 1),
			problems: []string{`f: Service default/serve: spec.Ports: unknown field; correct its name or remove it`}},
		{what: "duplicate key", in: "# c\n---\n" + serviceYAML + "    port: 81\n",
			problems: []string{`f: Service default/serve: line 11: key "port" is given twice; remove one of the two`}},
		{what: "duplicate key in JSON", in: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"type":"ClusterIP","type":"NodePort"}}`,
			problems: []string{`f: Service default/a: line 1: key "type" is given twice; remove one of the two`}},
		{what: "wrong type", in: strings.Replace(serviceYAML, "80", "eighty", 1),
			problems: []string{`f: Service default/serve: spec.ports.port: is a string, want a whole number; correct the value`}},
		{what: "number for a string", in: strings.Replace(serviceYAML, "http", "8080", 1),
			problems: []string{`f: Service default/serve: spec.ports.name: is a number, want a string (quote it); correct the value`}},
		{what: "list for a mapping", in: "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: []\n",
			problems: []string{`f: Service default/a: spec: is a list, want a mapping; correct the value`}},
		{what: "bad time", in: exportYAML + "  creationTimestamp: yesterday\n",
			problems: []string{`f: ServiceExport default/serve: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"; correct the object`}},
		{what: "syntax", in: exportYAML + "---\n" + serviceYAML + "\tx: [\n",
			objects:  []string{"ServiceExport default/serve"},
			problems: []string{`f: Service default/serve: line 14: found a tab character that violates indentation; correct the YAML`}},
		{what: "no kind", in: "apiVersion: v1\nmetadata: {name: a}\n", problems: []string{"f: object a: kind: missing; add the object's kind, such as Service"}},
		{what: "no apiVersion", in: "# 1\n---\n# 3\nkind: Service\n", problems: []string{"f: Service (document at line 2): apiVersion: missing; add the object's apiVersion, such as v1"}},
		{what: "no name", in: "apiVersion: v1\nkind: Service\n", problems: []string{"f: Service (document at line 1): metadata.name: missing; give the object a name"}},
		{what: "a scalar", in: "hello\n", problems: []string{"f: (document at line 1): not a Kubernetes object; write a mapping with apiVersion, kind and metadata"}},
		{what: "the KEP's group", in: strings.Replace(exportYAML, "multicluster.x-k8s.io/v1beta1", "multicluster.k8s.io/v1alpha1", 1),
			problems: []string{`f: ServiceExport default/serve: apiVersion: "multicluster.k8s.io/v1alpha1" is not a version of ServiceExport that strait reads; write multicluster.x-k8s.io/v1beta1`}},
		{what: "an old version", in: "apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\nmetadata: {name: a}\n",
			problems: []string{`f: EndpointSlice default/a: apiVersion: "discovery.k8s.io/v1beta1" is not a version of EndpointSlice that strait reads; write discovery.k8s.io/v1`}},
		{what: "a bad list", in: "apiVersion: v1\nkind: List\nitem: []\n",
			problems: []string{`f: List (document at line 1): item: unknown field; correct its name or remove it`}},
		{what: "a bad item", in: "apiVersion: v1\nkind: List\nitems: [3, {apiVersion: v1, kind: Node, metadata: {name: a, nam: b}}]\n",
			problems: []string{"f: (document at line 1, items[0]): not a Kubernetes object; write a mapping with apiVersion, kind and metadata",
				"f: Node a: metadata.nam: unknown field; correct its name or remove it"}},
	} {
		objects, problems := Decode("f", []byte(c.in))
		if got := keys(objects); !slices.Equal(got, c.objects) {
			t.Errorf("%s: objects %q, want %q", c.what, got, c.objects)
		}
		var lines []string
		for _, p := range problems {
			lines = append(lines, p.String())
		}
		if !slices.Equal(lines, c.problems) {
			t.Errorf("%s: problems\n%s\nwant\n%s", c.what, strings.Join(lines, "\n"), strings.Join(c.problems, "\n"))
		}
	}
}

// What is in an object arrives, whichever version it is in.
func TestDecodeVersions(t *testing.T) {
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		s := store{}
		s.update(map[string]content{"f": text(strings.Replace(exportYAML, "v1beta1", version, 1) +
			"  creationTimestamp: 2026-01-02T03:04:05Z\nspec: {exportedLabels: {a: b}, exportedAnnotations: {c: d}}\n---\n" + serviceYAML)})
		local := s.local(object.Config{})
		if len(local.Problems) > 0 || len(local.Exports) != 1 {
			t.Fatalf("%s: %+v", version, local)
		}
		e := local.Exports[0]
		if e.Service.Namespace != "default" || e.Created != 1767323045 || e.Labels["a"] != "b" || e.Annotations["c"] != "d" || e.Ports[0].Port != 80 {
			t.Errorf("%s: %+v", version, e)
		}
	}
}

func FuzzDecode(f *testing.F) {
	paths, err := filepath.Glob("../../install/examples/serve/*/*.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no example files: %v", err)
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, s := range []string{"", "---", "...\n---\n", "{", "{}", "[]", "null", "a: &a [*a]", "--- {}\n--- []", "\ufeff{}{}",
		"kind: List\napiVersion: v1\nitems: [null, {}, 1]", exportYAML + "  creationTimestamp: 9999999-01-01T00:00:00Z\n",
		serviceYAML + "    port: 1\n", "%TAG ! x\n--- !y\n", "\x00", "kind: Node\napiVersion: v1\nmetadata: {name: \"\\n\"}\nx: 1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, problems := Decode("f", data)
		for _, p := range problems {
			if p.File != "f" || p.Object == "" || p.Message == "" || strings.ContainsAny(p.String(), "\n\r") {
				t.Errorf("problem %#v", p)
			}
		}
		for _, o := range objects {
			if k := keyOf(o); k.kind == "" || k.name == "" || (k.namespace == "") != kinds[k.kind].ClusterScoped {
				t.Errorf("object %#v", k)
			}
		}
		// What is decoded must not upset the reading of objects either.
		s := store{}
		s.update(map[string]content{"f": {data: data}})
		for _, p := range s.local(object.Config{}).Problems {
			if strings.ContainsAny(p.String(), "\n\r") {
				t.Errorf("problem on several lines: %q", p)
			}
		}
	})
}
