package replicate_test

import (
	"strings"
	"testing"

	"strait.io/strait/replicate"
)

const labelled = `apiVersion: strait.io/v1alpha1
kind: ServicePolicy
metadata: {name: reflect}
spec:
  from: [onpremcluster1]
  to: ["*"]
  select: [{labels: {matchLabels: {reflect: "true"}}}]
  as: mirror
`

func TestParsePolicies(t *testing.T) {
	f, err := replicate.ParseFile([]byte(seed), "")
	if err != nil {
		t.Fatal(err)
	}
	if ps, err := f.ParsePolicies([]byte(labelled)); err != nil || len(ps) != 1 || ps[0].Spec.From[0] != "onpremcluster1" {
		t.Fatalf("%+v, %v", ps, err)
	}
	for change, says := range map[string]string{
		"as: mirror|as: join":                   "spec.as",
		"  as: mirror\n|":                       "spec.as", // the default is import
		"from: [onpremcluster1]|from: [north]":  `spec.from[0]: no cluster of the file is called "north"`,
		"to: [\"*\"]|to: [\"*\", us]":           "spec.to[1]",
		"name: reflect|name: ekscluster1":       "metadata.name",
		"select: [{labels: {matchLabels|select": "document 1",
	} {
		old, text, _ := strings.Cut(change, "|")
		if !strings.Contains(labelled, old) {
			t.Fatalf("there is no %q", old)
		}
		if _, err := f.ParsePolicies([]byte(strings.Replace(labelled, old, text, 1))); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: want %q: %v", text, says, err)
		}
	}
	if _, err := f.ParsePolicies([]byte("---\n")); err == nil || !strings.Contains(err.Error(), "ServicePolicy") {
		t.Errorf("no document: %v", err)
	}
}
