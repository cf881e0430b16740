package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"strait.io/strait/install/image/oci"
)

// written returns a layout with an index of two architectures and a chart.
func written(t *testing.T) string {
	t.Helper()
	root, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "straitd"), []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	var images []v1.Image
	for _, arch := range []string{"amd64", "arm64"} {
		i, err := oci.Build(oci.Image{Root: root, Arch: arch, Gzip: true, Entrypoint: []string{"/straitd"}, Annotations: map[string]string{"a": "b"}})
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, i)
	}
	chart, err := oci.Chart([]byte(`{"name":"strait"}`), []byte("packed"), map[string]string{"c": "d"})
	if err != nil {
		t.Fatal(err)
	}
	index, err := oci.Index(images, map[string]string{"a": "b"})
	if err != nil {
		t.Fatal(err)
	}
	err = oci.Layout(dir, []oci.Entry{{Name: "strait:v1.2.3", Index: index}, {Name: "charts/strait:1.2.3", Image: chart}})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPush: a registry has what the layout has, under its names, with annotations and for both
// architectures; pushing it again succeeds.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	dir := written(t)
	var out strings.Builder
	for range 2 {
		out.Reset()
		if err := push(t.Context(), &out, dir, host+"/team", false); err != nil {
			t.Fatal(err)
		}
	}
	pull := func(of string) *remote.Descriptor {
		ref, err := name.ParseReference(host + "/team/" + of)
		if err != nil {
			t.Fatal(err)
		}
		d, err := remote.Get(ref)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), ref.String()+"@"+d.Digest.String()+"\n") {
			t.Errorf("%s has the digest %s, and push says\n%s", ref, d.Digest, out.String())
		}
		return d
	}
	index, err := pull("strait:v1.2.3").ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil || len(m.Manifests) != 2 || m.Annotations["a"] != "b" {
		t.Fatalf("index %+v, %v", m, err)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		if p := m.Manifests[i].Platform; p == nil || p.OS != "linux" || p.Architecture != arch {
			t.Errorf("image %d is for %v, want linux/%s", i, p, arch)
		}
		image, err := index.Image(m.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != arch || config.Config.Entrypoint[0] != "/straitd" || config.Config.Labels["a"] != "b" {
			t.Errorf("%s: configuration %+v, %v", arch, config, err)
		}
	}
	chart, err := pull("charts/strait:1.2.3").Image()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := chart.Manifest()
	if err != nil || manifest.Config.MediaType != "application/vnd.cncf.helm.config.v1+json" || manifest.Annotations["c"] != "d" ||
		len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != "application/vnd.cncf.helm.chart.content.v1.tar+gzip" {
		t.Errorf("chart %+v, %v", manifest, err)
	}
}

func TestPushRefuses(t *testing.T) {
	dir := written(t)
	empty := t.TempDir()
	if err := oci.Layout(empty, nil); err != nil {
		t.Fatal(err)
	}
	nameless := t.TempDir()
	chart, err := oci.Chart([]byte("{}"), []byte("packed"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := oci.Layout(nameless, []oci.Entry{{Image: chart}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, registry, want string }{
		{dir, "", "it needs a layout and a registry"},
		{"", "localhost:1", "it needs a layout and a registry"},
		{"/nowhere", "localhost:1", "read layout /nowhere"},
		{empty, "localhost:1", "lists nothing"},
		{nameless, "localhost:1", "has no annotation org.opencontainers.image.ref.name"},
		{dir, "localhost:1/UPPER", "can only contain the characters"},
		{dir, "localhost:1", "push localhost:1/strait:v1.2.3: "},
	} {
		if err := push(t.Context(), &strings.Builder{}, c.dir, c.registry, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("push %q to %q: %v, want %q", c.dir, c.registry, err, c.want)
		}
	}
}
