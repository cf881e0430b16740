package main

import (
	"cmp"
	"strings"

	"strait.io/strait/install/chart"
)

// splitImage cuts NAME[:TAG][@DIGEST]; a colon before a slash is a registry's port.
func splitImage(ref string) map[string]any {
	name, digest, _ := strings.Cut(ref, "@")
	tag := ""
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name, tag = name[:i], name[i+1:]
	}
	return map[string]any{"repository": name, "tag": tag, "digest": digest}
}

// imagePin is the tag or digest that earlier commands gave the image, unless this one names an image: then this program's
// version does not decide. Else it is empty.
func imagePin(before, given chart.Values) string {
	image, _ := before["image"].(map[string]any)
	if _, now := given["image"]; now {
		return ""
	}
	tag, _ := image["tag"].(string)
	digest, _ := image["digest"].(string)
	return cmp.Or(digest, tag)
}
