package chart

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"
)

const (
	readmeFile = "strait/README.md"
	// beginValues is what the list of values in it begins after. The rest of the file is written by
	// hand.
	beginValues = "<!-- values, by go test ./install/chart -update -->\n"
)

// TestReadme: the chart's README lists every value of values.yaml, with its default and its
// comment.
func TestReadme(t *testing.T) {
	have, err := os.ReadFile(readmeFile)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(have), beginValues)
	if !found {
		t.Fatalf("%s has no line %q", readmeFile, beginValues)
	}
	want := head + beginValues + "\n| Value | Default | Meaning |\n|---|---|---|\n" + strings.Join(rows(values(t), ""), "")
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(readmeFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(have) != want {
		t.Errorf("%s does not follow from values.yaml; go test ./install/chart -update rewrites it", readmeFile)
	}
}

// values is the table in values.yaml, with its comments.
func values(t *testing.T) *yaml.Node {
	t.Helper()
	text, err := embedded.ReadFile("strait/values.yaml")
	var doc yaml.Node
	if err == nil {
		err = yaml.Unmarshal(text, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	return doc.Content[0]
}

// about is the comment above a key, as one line.
func about(key *yaml.Node) string {
	text := key.HeadComment
	if i := strings.LastIndex(text, "\n\n"); i >= 0 {
		text = text[i+2:] // what stands before an empty line is about the file
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\n# ", " "), "# ", "")
}

// rows are those of a table of values: of the table itself if it has a comment, and of what is in
// it.
func rows(n *yaml.Node, at string) (out []string) {
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := strings.TrimPrefix(at+"."+key.Value, ".")
		whole := value.Kind != yaml.MappingNode || slices.Contains(free, name)
		if whole || about(key) != "" {
			out = append(out, fmt.Sprintf("| `%s` | %s | %s |\n", name, byDefault(value, whole), strings.ReplaceAll(about(key), "|", `\|`)))
		}
		if !whole {
			out = append(out, rows(value, name)...)
		}
	}
	return out
}

// byDefault is a value as people write it on a command line, or where to read it if it is long.
func byDefault(n *yaml.Node, whole bool) string {
	var v any
	if !whole || n.Decode(&v) != nil || v == nil || v == "" {
		return ""
	}
	text, err := json.Marshal(v)
	switch s, is := v.(string); {
	case err != nil || len(text) > 90:
		return "see `values.yaml`"
	case is:
		return "`" + s + "`"
	}
	return "`" + string(text) + "`"
}

// TestSettingsPage: the table of docs/kubernetes.md has a row for every value.
func TestSettingsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(string(page), -1) {
		first, before := "", ""
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			full := name[1]
			if strings.HasPrefix(full, ".") {
				full = before + full
			} else if first = full; strings.Contains(first, ".") {
				before = first[:strings.LastIndex(first, ".")]
			}
			listed[full] = true
		}
	}
	var missing []string
	var look func(n *yaml.Node, at string)
	look = func(n *yaml.Node, at string) {
		for i := 0; i < len(n.Content); i += 2 {
			name := strings.TrimPrefix(at+"."+n.Content[i].Value, ".")
			if n.Content[i+1].Kind == yaml.MappingNode && !slices.Contains(free, name) {
				look(n.Content[i+1], name)
			} else if !listed[name] {
				missing = append(missing, name)
			}
		}
	}
	look(values(t), "")
	if len(missing) > 0 {
		t.Errorf("docs/kubernetes.md has no row for %s", strings.Join(missing, ", "))
	}
}
