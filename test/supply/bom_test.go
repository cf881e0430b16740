package supply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// component is what the tests look at in a bill of materials.
type component struct {
	Type, Name, Version string
	Hashes              []struct{ Alg, Content string }
}

type bom struct {
	BOMFormat    string
	Metadata     struct{ Component component }
	Components   []component
	Dependencies []struct {
		Ref       string
		DependsOn []string
	}
}

// TestBOM: make sbom lists every module of which the programs are built, and the image's list has the
// image's digest and its programs.
func TestBOM(t *testing.T) {
	needTool(t, "cyclonedx-gomod")
	dir := filepath.Join(t.TempDir(), "source")
	copySource(t, dir)
	made := run(t, dir, "make sbom VERSION=v1.2.3")
	load := func(name string) (b bom, has map[string]component) {
		if err := json.Unmarshal(read(t, filepath.Join(dir, "bin", name+".cdx.json")), &b); err != nil || b.BOMFormat != "CycloneDX" {
			t.Fatalf("%s: %q, %v", name, b.BOMFormat, err)
		}
		has = map[string]component{}
		for _, c := range b.Components {
			has[c.Name] = c
		}
		return b, has
	}
	image, inImage := load("strait-image-" + runtime.GOARCH)
	digest := image.Metadata.Component.Version
	if image.Metadata.Component.Type != "container" || !strings.Contains(made, "digest "+digest+"\n") {
		t.Errorf("the image is %+v, and make says\n%s", image.Metadata.Component, made)
	}
	if len(image.Dependencies) == 0 || len(image.Dependencies[0].DependsOn) != 2 {
		t.Errorf("the image's programs: %+v", image.Dependencies)
	}
	for _, program := range []string{"straitd", "strait"} {
		b, has := load(program + "-" + runtime.GOARCH)
		if b.Metadata.Component.Version != "v1.2.3" {
			t.Errorf("%s has the version %s", program, b.Metadata.Component.Version)
		}
		file := filepath.Join(dir, "bin/image", runtime.GOARCH, program)
		sum := sha256.Sum256(read(t, file))
		if c := inImage[program]; len(c.Hashes) != 1 || c.Hashes[0].Content != hex.EncodeToString(sum[:]) {
			t.Errorf("%s in the image: %+v, want the hash %x", program, c, sum)
		}
		modules := 0
		for line := range strings.Lines(run(t, dir, "go version -m "+file)) {
			f := strings.Fields(line)
			if len(f) < 3 || f[0] != "dep" {
				continue
			}
			modules++
			for where, c := range map[string]component{program: has[f[1]], "image": inImage[f[1]]} {
				if c.Version != f[2] {
					t.Errorf("%s lists %s %q, and %s holds %s", where, f[1], c.Version, program, f[2])
				}
			}
		}
		if modules < 10 || has["std"].Version == "" {
			t.Errorf("%s: %d modules, and Go's own library %q", program, modules, has["std"].Version)
		}
	}
}
