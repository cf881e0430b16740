// Package chart holds strait's Helm chart and renders it as Helm does, so that `helm install`, `strait
// install` and the committed manifests cannot differ.
//
// Input are values; outputs are Kubernetes objects as YAML. It must not know an API server: what a chart
// could look up there it does not.
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

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/strvals"
	"sigs.k8s.io/yaml"
)

// all: because the names of helpers begin with an underscore.
//
//go:embed all:strait
var files embed.FS

// Namespace is where strait lives.
const Namespace = "strait-system"

// Values are a chart's values as a tree.
type Values map[string]any

// Options say what to render.
type Options struct {
	// Namespace is the release's; empty is the constant Namespace.
	Namespace string
	// Version replaces the chart's appVersion, which is the image's tag where no value says another.
	Version string
	// Values override the chart's.
	Values Values
}

// Read merges values: files first, each over the one before, then settings as in `helm --set`: a.b=c,d=e.
func Read(documents [][]byte, settings []string) (Values, error) {
	merged := map[string]any{}
	for _, d := range documents {
		var v map[string]any
		if err := yaml.UnmarshalStrict(d, &v); err != nil {
			return nil, fmt.Errorf("read values: %w", err)
		}
		merged = loader.MergeMaps(merged, v)
	}
	for _, s := range settings {
		if err := strvals.ParseInto(s, merged); err != nil {
			return nil, fmt.Errorf("read --set %s: %w", s, err)
		}
	}
	return merged, nil
}

// Render returns the chart's objects, one document each, in the order of their files.
func Render(o Options) ([][]byte, error) {
	c, err := load()
	if err != nil {
		return nil, fmt.Errorf("load chart: %w", err)
	}
	if o.Version != "" {
		c.Metadata.AppVersion = o.Version
	}
	if err := known(c.Values, o.Values, ""); err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{Name: "strait", Namespace: cmp.Or(o.Namespace, Namespace), Revision: 1, IsInstall: true}
	values, err := util.ToRenderValues(c, o.Values, release, common.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("merge values: %w", err)
	}
	rendered, err := engine.Render(c, values)
	if err != nil {
		return nil, fmt.Errorf("render chart: %w", err)
	}
	var out [][]byte
	for _, name := range names(rendered) {
		out = append(out, split(rendered[name])...)
	}
	return out, nil
}

// load makes a chart of the embedded files.
func load() (*helmchart.Chart, error) {
	var list []*archive.BufferedFile
	err := fs.WalkDir(files, "strait", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		list = append(list, &archive.BufferedFile{Name: strings.TrimPrefix(name, "strait/"), Data: data})
		return err
	})
	if err != nil {
		return nil, err
	}
	return loader.LoadFiles(list)
}

// free are the values whose content is not the chart's business.
var free = []string{"config", "resources", "tunnelResources", "nodeSelector", "affinity", "updateStrategy", "podAnnotations",
	"commonLabels", "global"}

// known refuses values that the chart does not have: what was meant would silently not happen.
func known(have, given map[string]any, at string) error {
	var errs []error
	for name, v := range given {
		field := strings.TrimPrefix(at+"."+name, ".")
		if slices.Contains(free, field) {
			continue
		}
		h, ok := have[name]
		if !ok {
			errs = append(errs, fmt.Errorf("value %s: the chart has no such value; docs/kubernetes.md lists all", field))
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

// names are those of the manifests, in order.
func names(rendered map[string]string) (out []string) {
	for name := range rendered {
		if path.Ext(name) == ".yaml" {
			out = append(out, name)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	return out
}

// rank puts first what others need.
func rank(name string) int {
	order := []string{"namespace.yaml", "crds.yaml", "rbac.yaml", "configmap.yaml"}
	if i := slices.Index(order, path.Base(name)); i >= 0 {
		return i
	}
	return len(order)
}

// split cuts a rendered file into its documents, without those that hold nothing.
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

// Manifest joins documents into one file for `kubectl apply -f`.
func Manifest(docs [][]byte) []byte {
	var b strings.Builder
	for _, d := range docs {
		b.WriteString("---\n")
		b.Write(d)
	}
	return []byte(b.String())
}
