package manifest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
)

const sliceYAML = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: serve-1, labels: {kubernetes.io/service-name: serve}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.1.1.10]}]
`

func lines(ps []clustermesh.Problem) (out []string) {
	for _, p := range ps {
		out = append(out, p.String())
	}
	return out
}

// step is a version of the directory and what must then be known.
type step struct {
	what     string
	files    map[string]content
	objects  string // "nodes/exports/endpoints"
	problems []string
}

func text(s string) content { return content{data: []byte(s)} }

func summary(l clustermesh.Local) string {
	return strings.Repeat("n", len(l.Nodes)) + "/" + strings.Repeat("x", len(l.Exports)) + "/" + strings.Repeat("e", len(l.Endpoints))
}

func TestStore(t *testing.T) {
	good := serviceYAML + "---\n" + exportYAML
	bad := strings.Replace(good, "port: 80", "prot: 80", 1)
	const badLine = "a.yaml: Service default/serve: spec.ports[0].prot: unknown field"
	for _, c := range []struct {
		what  string
		steps []step
	}{
		{"the last good version stays in force", []step{
			{"good", map[string]content{"a.yaml": text(good), "b.yaml": text(sliceYAML)}, "/x/e", nil},
			{"bad", map[string]content{"a.yaml": text(bad), "b.yaml": text(sliceYAML)}, "/x/e",
				[]string{badLine + " (the file's last good version stays in force); correct its name or remove it"}},
			{"the other file still changes", map[string]content{"a.yaml": text(bad), "b.yaml": text(strings.Replace(sliceYAML, "10]", "10, 10.1.1.11]", 1))}, "/x/ee",
				[]string{badLine + " (the file's last good version stays in force); correct its name or remove it"}},
			{"good again", map[string]content{"a.yaml": text(good), "b.yaml": text(sliceYAML)}, "/x/e", nil},
			{"unreadable", map[string]content{"a.yaml": {err: errors.New("permission denied")}, "b.yaml": text(sliceYAML)}, "/x/e",
				[]string{"a.yaml: file: permission denied (the file's last good version stays in force); make it a readable file, or delete it"}},
			{"readable again", map[string]content{"a.yaml": text(good), "b.yaml": text(sliceYAML)}, "/x/e", nil},
			{"emptied", map[string]content{"a.yaml": text(""), "b.yaml": text(sliceYAML)}, "/x/e",
				[]string{"a.yaml: file: is empty (the file's last good version stays in force); delete the file to remove its objects"}},
			{"only comments", map[string]content{"a.yaml": text("# nothing\n"), "b.yaml": text(sliceYAML)}, "//", nil},
			{"deleted", map[string]content{"b.yaml": text(sliceYAML)}, "//", nil},
		}},
		{"a file that was never good gives its good documents", []step{
			{"bad", map[string]content{"a.yaml": text("kind: X\n---\n" + good)}, "/x/",
				[]string{"a.yaml: X (document at line 1): apiVersion: missing; add the object's apiVersion, such as v1"}},
			{"bad and different", map[string]content{"a.yaml": text("kind: X\n---\n" + good + "---\n" + sliceYAML)}, "/x/e",
				[]string{"a.yaml: X (document at line 1): apiVersion: missing; add the object's apiVersion, such as v1"}},
			{"good, then bad", map[string]content{"a.yaml": text(good)}, "/x/", nil},
		}},
		{"a new file is empty for a moment", []step{
			{"empty", map[string]content{"a.yaml": text("")}, "//", nil},
			{"bad", map[string]content{"a.yaml": text("x\n---\n" + good)}, "/x/",
				[]string{"a.yaml: (document at line 1): not a Kubernetes object; write a mapping with apiVersion, kind and metadata"}},
		}},
		{"the same object twice", []step{
			{"in two files", map[string]content{"b.yaml": text(good), "a.yaml": text(serviceYAML)}, "/x/",
				[]string{"b.yaml: Service default/serve: also in a.yaml: the first is used, this one is not; keep one of the two"}},
			{"in one file", map[string]content{"a.yaml": text(good + "---\n" + exportYAML)}, "/x/",
				[]string{"a.yaml: ServiceExport default/serve: twice in this file: the first is used, this one is not; keep one of the two"}},
			{"the alpha version is the same object", map[string]content{"a.yaml": text(good), "b.yaml": text(strings.Replace(exportYAML, "beta1", "alpha1", 1))}, "/x/",
				[]string{"b.yaml: ServiceExport default/serve: also in a.yaml: the first is used, this one is not; keep one of the two"}},
		}},
		{"problems of meaning name the file, and the rest goes on", []step{
			{"an address", map[string]content{"a.yaml": text(good), "b.yaml": text(strings.Replace(sliceYAML, "10]", "10, 10.1.1.x]", 1))}, "/x/e",
				[]string{`b.yaml: EndpointSlice default/serve-1: endpoints[0].addresses[1]: "10.1.1.x" is not an IP address: not used; correct the address; the slice's other endpoints are used`}},
		}},
	} {
		s := store{}
		for _, step := range c.steps {
			if !s.update(step.files) {
				t.Errorf("%s: %s: no news", c.what, step.what)
			}
			local := s.local(object.Config{})
			if got := summary(local); got != step.objects {
				t.Errorf("%s: %s: %s, want %s", c.what, step.what, got, step.objects)
			}
			if got := lines(local.Problems); !slices.Equal(got, step.problems) {
				t.Errorf("%s: %s: problems\n%s\nwant\n%s", c.what, step.what, strings.Join(got, "\n"), strings.Join(step.problems, "\n"))
			}
			if s.update(step.files) {
				t.Errorf("%s: %s: news without a change", c.what, step.what)
			}
		}
	}
}
