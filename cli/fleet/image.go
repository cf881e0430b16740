package fleet

import (
	"cmp"
	"strings"

	"sigs.k8s.io/yaml"

	"strait.io/strait/install/chart"
)

// splitImage splits NAME[:TAG][@DIGEST]. A colon before a slash starts a registry's port.
func splitImage(ref string) map[string]any {
	name, digest, _ := strings.Cut(ref, "@")
	tag := ""
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name, tag = name[:i], name[i+1:]
	}
	return map[string]any{"repository": name, "tag": tag, "digest": digest}
}

// imagePin returns the tag or digest that an earlier command set for the image, which then wins
// over this program's version. It is empty if there is none, or if this command names an image.
func imagePin(before, given chart.Values) string {
	image, _ := before["image"].(map[string]any)
	if _, now := given["image"]; now {
		return ""
	}
	tag, _ := image["tag"].(string)
	digest, _ := image["digest"].(string)
	return cmp.Or(digest, tag)
}

// daemonImage returns the image of the daemon in the rendered chart.
func daemonImage(docs [][]byte) string {
	for _, d := range docs {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Template struct {
					Spec struct{ Containers []struct{ Image string } }
				}
			}
		}
		if err := yaml.Unmarshal(d, &o); err != nil || o.Kind != "DaemonSet" || o.Metadata.Name != "strait" {
			continue
		}
		for _, c := range o.Spec.Template.Spec.Containers {
			return c.Image
		}
	}
	return ""
}
