package chart

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"
)

const schemaFile = "strait/values.schema.json"

// TestSchema: values.schema.json, by which Helm refuses a typo, follows from values.yaml.
func TestSchema(t *testing.T) {
	text, err := embedded.ReadFile("strait/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	want := table(doc.Content[0], "")
	want["$schema"] = "http://json-schema.org/draft-07/schema#"
	want["title"] = "Values of the chart strait"
	want["properties"].(map[string]any)["global"] = map[string]any{"type": "object", "description": "What Helm passes to all charts; strait reads nothing of it."}
	out, err := json.MarshalIndent(want, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	out = append(out, '\n')
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(schemaFile, out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(schemaFile); err != nil || !bytes.Equal(have, out) {
		t.Errorf("%s does not follow from values.yaml (%v); go test ./install/chart -update rewrites it", schemaFile, err)
	}
}

// limits are what values.yaml itself does not show of a value.
var limits = map[string]map[string]any{
	"mesh.mode":                            {"enum": []string{"wireguard", "off"}},
	"mesh.implementation":                  {"enum": []string{"kernel", "userspace"}},
	"mesh.port":                            {"minimum": 1, "maximum": 65535},
	"mesh.mtu":                             {"minimum": 0, "maximum": 65535},
	"gossip.port":                          {"minimum": 1, "maximum": 65535},
	"authority.mode":                       {"enum": []string{"auto", "pinned", "off"}},
	"authority.sign":                       {"type": []string{"boolean", "null"}},
	"openshift.securityContextConstraints": {"type": []string{"boolean", "null"}},
	"authority.pin":                        {"type": []string{"boolean", "null"}},
	"leader.replicas":                      {"minimum": 0},
	"view.replicas":                        {"minimum": 0},
	"clusterSetIPs":                        {"enum": []string{"derived", "cidr"}},
	"importSlices":                         {"enum": []string{"all", "headless", "none"}},
	"log.level":                            {"enum": []string{"debug", "info", "warn", "error"}},
	"log.format":                           {"enum": []string{"text", "json"}},
	"image.pullPolicy":                     {"enum": []string{"Always", "IfNotPresent", "Never"}},
	"image.digest":                         {"pattern": "^(sha256:[0-9a-f]{64})?$"},
	"imagePullSecrets":                     {"items": map[string]any{"type": "object"}},
	"tolerations":                          {"items": map[string]any{"type": "object"}},
	"clusterSetCIDRs":                      {"maxItems": 2},
	"exposeAs":                             {"items": map[string]any{"enum": []string{"NodePort", "LoadBalancer"}}},
	"metrics.listen":                       {"pattern": `^(off|([0-9.]+|\[[0-9a-fA-F:.]+\]):[1-9][0-9]*)$`},
	"metrics.podMonitor.interval":          {"pattern": "^[0-9]+(ms|s|m|h)$"},
}

// table returns the schema of a table of values. It may have no values but those of values.yaml, unless its
// keys are free.
func table(n *yaml.Node, at string) map[string]any {
	if slices.Contains(free, at) {
		return map[string]any{"type": []string{"object", "null"}}
	}
	properties := map[string]any{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := strings.TrimPrefix(at+"."+key.Value, ".")
		p := property(value, name)
		if about := strings.ReplaceAll(strings.ReplaceAll(key.HeadComment, "\n# ", " "), "# ", ""); about != "" {
			p["description"] = about
		}
		properties[key.Value] = p
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func property(n *yaml.Node, name string) map[string]any {
	p := map[string]any{}
	switch {
	case n.Kind == yaml.MappingNode:
		p = table(n, name)
	case n.Kind == yaml.SequenceNode:
		p["type"], p["items"] = "array", map[string]any{"type": "string"}
	case n.Tag == "!!bool":
		p["type"] = "boolean"
	case n.Tag == "!!int":
		p["type"] = "integer"
	case n.Tag == "!!str":
		p["type"] = "string"
	}
	for k, v := range limits[name] {
		p[k] = v
	}
	if p["type"] != "object" && p["additionalProperties"] == nil {
		var defaults any
		if err := n.Decode(&defaults); err == nil {
			p["default"] = defaults
		}
	}
	return p
}
