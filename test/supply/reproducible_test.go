package supply

import (
	"bytes"
	"crypto/sha256"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// top is the root of the source.
const top = "../.."

// sizes are bounds of the programs' sizes in bytes. What calls methods by name, such as text/template,
// costs 27 MB, because the linker then keeps all methods of client-go. A function that names all kinds of
// Kubernetes, such as an informer factory's ForResource, costs 4.5 MB.
var sizes = map[string]int64{"strait": 45e6, "straitd": 47e6}

// TestReproducible: all who build the same source get the same programs and the same image, in
// whatever folder, with git or without, whatever their umask is.
func TestReproducible(t *testing.T) {
	here, there := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "a/longer/path")
	copySource(t, here)
	copySource(t, there)
	run(t, here, "umask 022; git init -q . && git add -A && git -c user.name=t -c user.email=t@t.invalid commit -qm all && make build image VERSION=v1.2.3")
	run(t, there, "umask 077; make build image VERSION=v1.2.3")
	for program, most := range sizes {
		if size := int64(len(read(t, filepath.Join(here, "bin", program)))); size > most {
			t.Errorf("%s has %d bytes; want at most %d. Does a new import call methods by name, as text/template does?", program, size, most)
		}
	}
	for _, f := range []string{"bin/straitd", "bin/strait", "bin/strait-image-" + runtime.GOARCH + ".tar"} {
		a, b := read(t, filepath.Join(here, f)), read(t, filepath.Join(there, f))
		if !bytes.Equal(a, b) {
			t.Errorf("%s: two builds of one source give %x and %x", f, sha256.Sum256(a), sha256.Sum256(b))
		}
		for _, dir := range []string{here, there} {
			if bytes.Contains(a, []byte(dir)) {
				t.Errorf("%s holds the name of the folder that it was built in", f)
			}
		}
	}
}

// copySource copies the source, without what git keeps and what make builds.
func copySource(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == top {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && (name == "bin" || strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case !d.Type().IsRegular() || strings.HasPrefix(name, "."):
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(to, filepath.Dir(name)), 0o755); err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a shell command in a folder, and returns its output.
func run(t *testing.T, dir, command string, env ...string) string {
	t.Helper()
	out, err := try(t, dir, command, env...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

func try(t *testing.T, dir, command string, env ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "-ec", command)
	c.Dir = dir
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	return string(out), err
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
