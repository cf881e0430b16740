// Package chart holds strait's Helm chart and renders it as Helm does, so that `helm install`,
// `strait install` and the committed manifests cannot differ: a test also renders it with Helm's
// own engine.
//
// Inputs are values; outputs are Kubernetes objects as YAML. It must not know an API server: the
// chart looks nothing up there.
package chart

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
	"sigs.k8s.io/yaml"
)

// all: because the names of helpers begin with an underscore.
//
//go:embed all:strait
var embedded embed.FS

// Namespace is the default namespace for strait.
const Namespace = "strait-system"

// Values are a chart's values as a tree.
type Values map[string]any

// Options are what to render.
type Options struct {
	// Namespace is the release's namespace; empty means the constant Namespace.
	Namespace string
	// Version replaces the chart's appVersion, which is the image's tag if no value sets one.
	Version string
	// Values override the chart's.
	Values Values
	// APIs are those that the API server has, as GROUP/VERSION.
	APIs []string
	// Files are a chart by the names of its files, to render instead of this one: that of a
	// release.
	Files map[string][]byte
}

// Merge puts the values over on top of under. A null in over removes a value.
func Merge(under, over Values) Values {
	if under == nil {
		under = Values{}
	}
	return merge(under, over)
}

// tag turns a version into one that is valid in labels and image tags, which Go's own versions,
// such as (devel) or v1.0.0+dirty, are not.
func tag(version string) string {
	out := strings.Map(func(r rune) rune {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r)) {
			return r
		}
		return '-'
	}, version)
	return strings.Trim(out[:min(len(out), 63)], "-_.")
}

// Render returns the chart's objects, one document each, in the order of their files.
func Render(o Options) ([][]byte, error) {
	c, err := load(o.Files, o.APIs)
	if err != nil {
		return nil, fmt.Errorf("load chart: %w", err)
	}
	if o.Version != "" {
		c.meta.AppVersion = tag(o.Version)
	}
	if err := known(c.values, o.Values, ""); err != nil {
		return nil, err
	}
	data := map[string]any{
		"Values":  map[string]any(Merge(c.values, o.Values)),
		"Chart":   c.meta,
		"Release": map[string]any{"Name": "strait", "Namespace": cmp.Or(o.Namespace, Namespace)},
	}
	var out [][]byte
	for _, name := range c.manifests() {
		var text strings.Builder
		if err := c.templates.ExecuteTemplate(&text, name, data); err != nil {
			return nil, fmt.Errorf("render chart: %w", err)
		}
		out = append(out, split(text.String())...)
	}
	return out, nil
}

// metadata is the part of Chart.yaml that templates use.
type metadata struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	AppVersion string `json:"appVersion"`
}

// parsed is the chart, ready to be rendered.
type parsed struct {
	meta      metadata
	values    map[string]any
	files     chartFiles
	templates *template.Template
}

// repository is the image's name in the releases of a registry, which the linker sets.
var repository string

// load parses a chart's files: by default the embedded ones, with the image of the registry that
// this program was built for.
func load(files map[string][]byte, apis []string) (*parsed, error) {
	own := files == nil
	if own {
		var err error
		if files, err = Files(); err != nil {
			return nil, err
		}
	}
	c := &parsed{files: chartFiles{}, templates: template.New("chart").Option("missingkey=zero")}
	c.templates.Funcs(functions(c.templates, c.files, apis))
	for name, data := range files {
		var err error
		switch {
		case name == "Chart.yaml":
			err = yaml.Unmarshal(data, &c.meta)
		case name == "values.yaml":
			err = yaml.UnmarshalStrict(data, &c.values)
		case strings.HasPrefix(name, "templates/"):
			_, err = c.templates.New(name).Parse(functionsForMethods.Replace(string(data)))
		default:
			c.files[name] = data
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if image, ok := c.values["image"].(map[string]any); ok && own && repository != "" {
		image["repository"] = repository
	}
	return c, nil
}

// Files returns the chart's files by their names: Chart.yaml, templates/daemonset.yaml.
func Files() (map[string][]byte, error) {
	out := map[string][]byte{}
	err := fs.WalkDir(embedded, "strait", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		out[strings.TrimPrefix(name, "strait/")], err = embedded.ReadFile(name)
		return err
	})
	return out, err
}

// manifests returns the names of the templates that render objects, in order, without the pods of
// helm test.
func (c *parsed) manifests() (out []string) {
	for _, t := range c.templates.Templates() {
		if path.Ext(t.Name()) == ".yaml" && !strings.HasPrefix(t.Name(), "templates/tests/") {
			out = append(out, t.Name())
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	return out
}

// free are the values whose content the chart does not check.
var free = []string{"config", "resources", "tunnelResources", "leader.resources", "view.resources", "leader.nodeSelector", "leader.affinity", "nodeSelector", "affinity", "updateStrategy", "podAnnotations",
	"commonLabels", "metrics.podMonitor.labels", "metrics.prometheusRule.labels", "metrics.dashboards.labels", "seLinuxOptions", "global"}

// known returns an error for each given value that the chart does not have: it would be ignored
// silently.
func known(have, given map[string]any, at string) error {
	var errs []error
	for name, v := range given {
		field := strings.TrimPrefix(at+"."+name, ".")
		if slices.Contains(free, field) {
			continue
		}
		h, ok := have[name]
		if !ok {
			errs = append(errs, fmt.Errorf("value %s: the chart has no such value; docs/kubernetes.md lists them all", field))
			continue
		}
		inner, isTable := v.(map[string]any)
		table, wantTable := h.(map[string]any)
		switch {
		case isTable && wantTable:
			errs = append(errs, known(table, inner, field))
		case isTable != wantTable && v != nil:
			errs = append(errs, fmt.Errorf("value %s: want %s", field, map[bool]string{true: "a table", false: "a single value"}[wantTable]))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return errors.Join(errs...)
}

// rank puts first the templates whose objects others need, and last those of kinds that the cluster may lack.
func rank(name string) int {
	order := []string{"namespace.yaml", "crds.yaml", "rbac.yaml", "configmap.yaml"}
	if path.Base(name) == "monitoring.yaml" {
		return len(order) + 1
	}
	if i := slices.Index(order, path.Base(name)); i >= 0 {
		return i
	}
	return len(order)
}

// split splits a rendered file into its documents, without empty ones.
func split(text string) (out [][]byte) {
	for doc := range strings.SplitSeq("\n"+text, "\n---") {
		var any any
		if err := yaml.Unmarshal([]byte(doc), &any); err == nil && any == nil {
			continue
		}
		out = append(out, []byte(strings.TrimSpace(doc)+"\n"))
	}
	return out
}
