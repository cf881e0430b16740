package supply

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// top is the root of the source.
const top = "../.."

// copySource copies the source, without what git keeps and what make builds, but with git's own
// settings.
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
		case name == ".gitattributes", name == ".gitignore":
		case d.IsDir() && (name == "bin" || name == "dist" || name == "site" || strings.HasPrefix(name, ".")):
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
