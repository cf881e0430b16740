package chart

import (
	"bytes"
	"strings"
	"testing"
)

// TestRepository: a program that was built for a registry asks for its image there; a chart that is
// given has its own, and so does a user.
func TestRepository(t *testing.T) {
	repository = "registry.example/team/strait"
	defer func() { repository = "" }()
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		o          Options
	}{
		{"of the registry", "image: registry.example/team/strait:v1.2.3\n", Options{Version: "v1.2.3"}},
		{"of a chart", "image: localhost/strait:v1.2.3\n", Options{Version: "v1.2.3", Files: files}},
		{"of a user", "image: mine/strait:v1.2.3\n", Options{Version: "v1.2.3", Values: Values{"image": map[string]any{"repository": "mine/strait"}}}},
	} {
		docs, err := Render(c.o)
		if err != nil {
			t.Fatal(err)
		}
		if all := string(bytes.Join(docs, nil)); !strings.Contains(all, c.want) || strings.Count(all, "/strait:v1.2.3\n") != strings.Count(all, strings.TrimPrefix(c.want, "image: ")) {
			t.Errorf("the image %s is not %s", c.name, c.want)
		}
	}
	if _, err := Render(Options{Files: map[string][]byte{"values.yaml": []byte("a: [")}}); err == nil || !strings.Contains(err.Error(), "values.yaml") {
		t.Errorf("a chart that cannot be read: %v", err)
	}
}
