package supply

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"

	"strait.io/strait/test/pages"
)

// verify executes what docs/release.md says about checking what was downloaded, and wants each
// change noticed.
func (m made) verify(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(top, "docs/release.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := pages.Of([]pages.Page{{Path: "docs/release.md", Text: string(page)}}, pages.Release)
	var script strings.Builder
	for _, b := range blocks {
		script.WriteString(b.Script())
	}
	downloads := t.TempDir()
	run(t, downloads, "cp "+m.file("dist")+"/* . 2>/dev/null || true; cp "+m.file("../release.pub")+" strait.pub; rm -f strait_*darwin*")
	env := []string{"VERSION=" + version, "REGISTRY=" + m.registry}
	if out, err := try(t, downloads, script.String(), env...); err != nil || !strings.Contains(out, "Signature and comment signature verified") {
		t.Errorf("%s: %v\n%s", script.String(), err, out)
	}
	for _, change := range []string{"echo x >>strait.yaml", "echo x >>SHA256SUMS", "cp strait.rb SHA256SUMS.minisig"} {
		if out, err := try(t, downloads, "cp "+m.file("dist")+"/* . 2>/dev/null || true; "+change+"\n"+script.String(), env...); err == nil {
			t.Errorf("%s is not noticed:\n%s", change, out)
		}
	}
}

// krew: its own check takes the manifest, and installs strait from it for each platform.
func (m made) krew(t *testing.T) {
	needTool(t, "krew")
	needTool(t, "validate-krew-manifest")
	dir := t.TempDir()
	tools, err := filepath.Abs(filepath.Join(top, "bin/tools"))
	if err != nil {
		t.Fatal(err)
	}
	kubectl := "#!/bin/sh\nshift\nKREW_NO_UPGRADE_CHECK=1 exec " + tools + "/krew \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(kubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	// The index names manifests after their plugins.
	run(t, dir, "cp "+m.file("dist/strait.krew.yaml")+" strait.yaml")
	out := run(t, dir, tools+"/validate-krew-manifest -manifest strait.yaml", "PATH="+dir+":"+os.Getenv("PATH"))
	if want := fmt.Sprintf("all %d spec.platforms installed fine", len(strings.Fields(platforms))); !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
	installed := run(t, dir, "KREW_ROOT="+dir+"/root ./kubectl krew install --manifest strait.yaml >&2; "+dir+"/root/bin/kubectl-strait --help")
	if !strings.Contains(installed, "kubectl strait") {
		t.Errorf("the plugin does not call itself kubectl strait:\n%s", installed)
	}
}

// push: the registry has the image for both processors and the chart, of the digests that the
// release names.
func (m made) push(t *testing.T) {
	out := run(t, m.source, "make push REGISTRY="+m.registry)
	of := func(entry string) *remote.Descriptor {
		ref, err := name.ParseReference(m.registry + "/" + entry)
		if err != nil {
			t.Fatal(err)
		}
		d, err := remote.Get(ref)
		if err != nil {
			t.Fatalf("%s: %v\n%s", entry, err, out)
		}
		return d
	}
	image := of("strait:" + version)
	if by := m.registry + "/strait@" + image.Digest.String(); !strings.Contains(string(m.dist(t, "strait.yaml")), "image: "+by+"\n") {
		t.Errorf("strait.yaml does not run %s", by)
	}
	index, err := image.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var archs []string
	for _, d := range manifest.Manifests {
		archs = append(archs, d.Platform.String())
		i, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		m.labelled(t, i)
	}
	if fmt.Sprint(archs) != "[linux/amd64 linux/arm64]" {
		t.Errorf("the image is for %v", archs)
	}
	for key, want := range m.annotations(t) {
		if manifest.Annotations[key] != want {
			t.Errorf("annotation %s of the index: %q, want %q", key, manifest.Annotations[key], want)
		}
	}
	of("charts/strait:" + version[1:])
}

func (m made) annotations(t *testing.T) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "strait",
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.revision": strings.TrimSpace(run(t, m.source, "git rev-parse HEAD")),
		"org.opencontainers.image.created":  strings.TrimSpace(run(t, m.source, "TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ")),
	}
}

// labelled: each image says in its manifest and to runtimes what it is.
func (m made) labelled(t *testing.T, image v1.Image) {
	t.Helper()
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range m.annotations(t) {
		if manifest.Annotations[key] != want || config.Config.Labels[key] != want {
			t.Errorf("%s of the image for %s: annotation %q, label %q, want %q", key, config.Architecture, manifest.Annotations[key], config.Config.Labels[key], want)
		}
	}
}

// helm: the chart that Helm itself pulls from the registry renders to the manifests of the release,
// but for the pod of helm test, and the label that says whom the objects belong to.
func (m made) helm(t *testing.T) {
	needTool(t, "helm")
	helm, err := filepath.Abs(filepath.Join(top, "bin/tools/helm"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	chart := "oci://" + m.registry + "/charts/strait --version " + version[1:] + " --plain-http"
	env := []string{"HELM_CACHE_HOME=" + dir, "HELM_CONFIG_HOME=" + dir, "HELM_DATA_HOME=" + dir}
	run(t, dir, helm+" pull "+chart, env...)
	if a, b := read(t, filepath.Join(dir, "strait-"+version[1:]+".tgz")), m.dist(t, "strait-"+version[1:]+".tgz"); string(a) != string(b) {
		t.Error("the chart that Helm pulls is not that of the release")
	}
	rendered := run(t, dir, helm+" template strait "+chart+" --namespace strait-system --set createNamespace=true --no-hooks 2>/dev/null", env...)
	rendered = strings.ReplaceAll(rendered, "    app.kubernetes.io/managed-by: Helm\n", "")
	ours, theirs := objects(t, string(m.dist(t, "strait.yaml"))), objects(t, rendered)
	if len(ours) < 20 {
		t.Errorf("strait.yaml has %d objects", len(ours))
	}
	for name := range theirs {
		if !reflect.DeepEqual(ours[name], theirs[name]) {
			t.Errorf("%s is %.2000v\nin strait.yaml, and of Helm\n%.2000v", name, fmt.Sprint(ours[name]), fmt.Sprint(theirs[name]))
		}
	}
	if len(ours) != len(theirs) {
		t.Errorf("strait.yaml has %d objects, and Helm renders %d", len(ours), len(theirs))
	}
	about := run(t, dir, helm+" show chart "+chart, env...)
	for _, want := range []string{"version: " + version[1:] + "\n", "appVersion: " + version + "\n"} {
		if !strings.Contains(about, want) {
			t.Errorf("no %q in\n%s", want, about)
		}
	}
}

// objects are those of documents, by "Kind/name".
func objects(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for doc := range strings.SplitSeq("\n"+text, "\n---") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(doc+"\n"), &o); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if o != nil {
			meta, _ := o["metadata"].(map[string]any)
			out[fmt.Sprint(o["kind"], "/", meta["name"])] = o
		}
	}
	return out
}
