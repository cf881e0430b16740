package manifest

import (
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh/object"
	"strait.io/strait/internal/problem"
)

// What is missing because a document cannot be read is no problem of its own: its cure is the same.
func TestProblemsOfUnreadDocuments(t *testing.T) {
	slice := strings.Replace(sliceYAML, "10]", "10], nodeName: n1", 1)
	const node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {addresses: [{type: InternalIP, address: 10.0.0.1}]}\n"
	broken := func(doc string) string { return strings.Replace(doc, "metadata:", "metadata: {", 1) }
	wrong := func(doc string) string { return strings.Replace(doc, "metadata:", "metdata: {}\nmetadata:", 1) }
	type files = map[string]content
	for _, c := range []struct {
		what  string
		files files
		want  []problem.Code
	}{
		{"all is there", files{"a.yaml": text(exportYAML + "---\n" + serviceYAML + "---\n" + node), "b.yaml": text(slice)}, nil},
		{"the Service is not", files{"a.yaml": text(exportYAML)}, []problem.Code{problem.ExportWithoutService}},
		{"the Node is not", files{"a.yaml": text(exportYAML + "---\n" + serviceYAML), "b.yaml": text(slice)}, []problem.Code{problem.EndpointWithoutNode}},
		{"the Service is not YAML", files{"a.yaml": text(exportYAML + "---\n" + broken(serviceYAML))}, []problem.Code{problem.NotYAML}},
		{"the Service is not YAML in another file", files{"a.yaml": text(exportYAML), "b.yaml": text(broken(serviceYAML))}, []problem.Code{problem.NotYAML}},
		{"a file of unknown objects", files{"a.yaml": text(exportYAML), "b.yaml": text("no: {")}, []problem.Code{problem.NotYAML}},
		{"an empty file", files{"a.yaml": text(exportYAML), "b.yaml": text("")}, []problem.Code{problem.ExportWithoutService}},
		{"the Service has an unknown field", files{"a.yaml": text(exportYAML + "---\n" + wrong(serviceYAML))}, []problem.Code{problem.FieldUnknown}},
		{"another Service has one", files{"a.yaml": text(exportYAML + "---\n" + strings.Replace(wrong(serviceYAML), "name: serve", "name: other", 1))},
			[]problem.Code{problem.FieldUnknown, problem.ExportWithoutService}},
		{"the Node has an unknown field", files{"a.yaml": text(exportYAML + "---\n" + serviceYAML + "---\n" + wrong(node)), "b.yaml": text(slice)},
			[]problem.Code{problem.FieldUnknown}},
		{"an object that is ignored", files{"a.yaml": text(exportYAML + "---\nkind: Deployment\napiVersion: apps/v1\nmetadata: {name: d}\n")},
			[]problem.Code{problem.KindIgnored, problem.ExportWithoutService}},
	} {
		s := store{}
		s.update(c.files)
		var got []problem.Code
		for _, p := range s.local(object.Config{}).Problems {
			got = append(got, p.Code)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", c.what, lines(s.local(object.Config{}).Problems))
		}
	}
}

// The last good version of a file does not have what its new one adds.
func TestProblemsOfANewVersion(t *testing.T) {
	s := store{}
	s.update(map[string]content{"a.yaml": text(sliceYAML)})
	s.update(map[string]content{"a.yaml": text(sliceYAML + "---\n" + strings.Replace(serviceYAML, "port:", "prot:", 1)), "b.yaml": text(exportYAML)})
	if got := s.local(object.Config{}).Problems; len(got) != 1 || got[0].Code != problem.FieldUnknown {
		t.Errorf("%v", lines(got))
	}
}
