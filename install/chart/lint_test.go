package chart_test

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"sigs.k8s.io/yaml"

	"strait.io/strait/install/chart"
)

// TestLint: helm lint finds nothing, not even a remark.
func TestLint(t *testing.T) {
	for _, m := range lint.RunAll("strait", map[string]any{}, chart.Namespace).Messages {
		t.Error(m)
	}
}

// TestCatalogue: what catalogues of charts show is there, and is what the chart contains.
func TestCatalogue(t *testing.T) {
	m := helmChart(t).Metadata
	if len(m.Sources) == 0 || len(m.Keywords) == 0 || len(m.Maintainers) == 0 || m.Home == "" || m.Annotations["artifacthub.io/license"] == "" {
		t.Errorf("metadata %+v", m)
	}
	text, is := strings.CutPrefix(m.Icon, "data:image/svg+xml;base64,")
	icon, err := base64.StdEncoding.DecodeString(text)
	var picture struct {
		XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
	}
	if err == nil {
		err = xml.Unmarshal(icon, &picture)
	}
	if !is || err != nil {
		t.Errorf("the icon is no picture: %v in %s", err, m.Icon)
	}
	var listed []struct{ Kind, Version, Name, DisplayName, Description string }
	var examples []struct{ APIVersion, Kind string }
	for annotation, into := range map[string]any{"artifacthub.io/crds": &listed, "artifacthub.io/crdsExamples": &examples} {
		if err := yaml.Unmarshal([]byte(m.Annotations[annotation]), into); err != nil {
			t.Fatalf("%s: %v", annotation, err)
		}
	}
	var have, want []string
	stored := map[string]bool{}
	for _, c := range listed {
		have = append(have, fmt.Sprint(c.Kind, " ", c.Version, " ", c.Name))
		if c.DisplayName == "" || c.Description == "" {
			t.Errorf("%s is not described", c.Kind)
		}
	}
	for id, o := range render(t, "{}") {
		name, is := strings.CutPrefix(id, "CustomResourceDefinition/")
		if !is {
			continue
		}
		for _, v := range dig(o, "spec", "versions").([]any) {
			if dig(v, "storage") == true {
				kind, version := fmt.Sprint(dig(o, "spec", "names", "kind")), fmt.Sprint(dig(v, "name"))
				want = append(want, kind+" "+version+" "+name)
				stored[fmt.Sprint(dig(o, "spec", "group"), "/", version, " ", kind)] = true
			}
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the chart says that it has the CRDs\n%s\nit has\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
	for _, e := range examples {
		if !stored[e.APIVersion+" "+e.Kind] {
			t.Errorf("an example is a %s of %s, which the chart does not have", e.Kind, e.APIVersion)
		}
	}
}
