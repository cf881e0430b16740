package release

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// Chart returns the files of a chart, as Helm packs them, with the release's version and image. The
// image is named by the digest of its index, which wins over its tag: so a chart runs the image
// that it was made with.
func (r Release) Chart(files []File, digest string) ([]File, error) {
	var out []File
	edits := map[string][][2]string{
		"Chart.yaml":  {{"version", r.Number()}, {"appVersion", r.Version}},
		"values.yaml": {{"  repository", r.Image()}, {"  digest", `"` + digest + `"`}},
	}
	for _, f := range files {
		for _, e := range edits[f.Name] {
			text, err := set(string(f.Text), e[0], e[1])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			f.Text = []byte(text)
		}
		delete(edits, f.Name)
		f.Name = path.Join("strait", f.Name)
		out = append(out, f)
	}
	if len(edits) > 0 {
		return nil, fmt.Errorf("the chart lacks Chart.yaml or values.yaml")
	}
	return out, nil
}

// set replaces the value of a field, which is given with its indentation and begins one line, and
// keeps the rest as people wrote it.
func set(text, field, value string) (string, error) {
	line := regexp.MustCompile(`(?m)^(` + field + `:) .*$`)
	if n := len(line.FindAllString(text, -1)); n != 1 {
		return "", fmt.Errorf("%d lines begin with the field %s, want one", n, field)
	}
	return line.ReplaceAllString(text, "${1} "+strings.ReplaceAll(value, "$", "$$")), nil
}

// Metadata returns the chart's metadata as a registry keeps it: Chart.yaml as JSON.
func Metadata(chart []File) ([]byte, error) {
	for _, f := range chart {
		if f.Name == "strait/Chart.yaml" {
			return yaml.YAMLToJSON(f.Text)
		}
	}
	return nil, fmt.Errorf("the chart lacks Chart.yaml")
}

// Manifests joins rendered documents into what kubectl applies.
func (r Release) Manifests(docs [][]byte) []byte {
	var out strings.Builder
	fmt.Fprintf(&out, "# strait %s, rendered from its chart: kubectl apply --server-side -f strait.yaml\n", r.Version)
	for _, d := range docs {
		out.WriteString("---\n")
		out.Write(d)
	}
	return []byte(out.String())
}
