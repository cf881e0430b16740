package chart

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	generatedCRD = "../../api/v1alpha1/zz_generated.crd.yaml"
	policyCRD    = "strait/files/strait.io_servicepolicies.yaml"
)

// schema is a node of a CRD's schema, or of the CRD.
type schema = map[string]any

// crdLimits are what the types of package api cannot say of types that are not theirs, by the path
// of the schema.
var crdLimits = map[string]schema{
	"metadata":                               {"properties": schema{"name": schema{"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}}},
	"spec.select.[].labels.matchExpressions": {"maxItems": 64},
	"spec.select.[].labels.matchExpressions.[].operator": {"enum": []string{"In", "NotIn", "Exists", "DoesNotExist"}},
}

// TestPolicyCRD: the CRD of ServicePolicies is what controller-gen makes of the Go types, with the
// limits above.
func TestPolicyCRD(t *testing.T) {
	text, err := os.ReadFile(generatedCRD)
	var crd schema
	if err == nil {
		err = yaml.Unmarshal(text, &crd)
	}
	if err != nil {
		t.Fatal(err)
	}
	delete(crd["metadata"].(schema), "annotations") // the version of controller-gen
	version := crd["spec"].(schema)["versions"].([]any)[0].(schema)
	for path, limit := range crdLimits {
		at := version["schema"].(schema)["openAPIV3Schema"].(schema)
		for name := range strings.SplitSeq(path, ".") {
			next := "properties"
			if name == "[]" {
				next = "items"
			}
			below, _ := at[next].(schema)
			if next == "properties" {
				below, _ = below[name].(schema)
			}
			if below == nil {
				t.Fatalf("the schema has no %s of %s", name, path)
			}
			at = below
		}
		for k, v := range limit {
			at[k] = v
		}
	}
	want, err := yaml.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	want = append([]byte("# From api/v1alpha1, by go generate ./api/v1alpha1 and go test ./install/chart -update; do not edit.\n"), want...)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(policyCRD, want, 0o644); err != nil {
			t.Fatal(err)
		}
		if built, err := embedded.ReadFile(policyCRD); err != nil || !bytes.Equal(built, want) {
			t.Errorf("%s is another now (%v): run go test ./install/chart -update again, for what is rendered of it", policyCRD, err)
		}
	}
	if have, err := os.ReadFile(policyCRD); err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s does not follow from %s (%v); go test ./install/chart -update rewrites it", policyCRD, generatedCRD, err)
	}
}
