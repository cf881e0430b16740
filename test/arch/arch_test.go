package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func TestSource(t *testing.T) {
	files, err := Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go file found")
	}
	for _, v := range Check(files) {
		t.Error(v)
	}
}

// TestPorts wants no fixed port in tests that an outgoing connection can have by chance.
func TestPorts(t *testing.T) {
	found, err := checkPorts(os.DirFS(root), Ports)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

// TestConfigurationDoc wants every field of the daemon's configuration in the page that lists them.
func TestConfigurationDoc(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(root, "daemon/config.go"))
	if err != nil {
		t.Fatal(err)
	}
	fields, err := configFields(source)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		if !strings.Contains(string(page), "| `"+f+"` |") {
			t.Errorf("docs/configuration.md: [docs] has no row for the field %s of daemon/config.go: add it", f)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		if !slices.Contains(fields, row[1]) {
			t.Errorf("docs/configuration.md: [docs] describes %s, which daemon/config.go does not have: remove it", row[1])
		}
	}
}

// TestProblemPage wants a section about each Problem's code in the page that explains them.
func TestProblemPage(t *testing.T) {
	files, err := Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/problems.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range checkCodes(files, string(page)) {
		t.Error(v)
	}
}

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

// TestBinaries looks at what is linked in, through every import: what the compiler sees, not what the
// files say.
func TestBinaries(t *testing.T) {
	linked := goList(t, "-deps", "./cmd/...")
	for _, p := range linked {
		inside, ours := strings.CutPrefix(p.ImportPath, Module+"/")
		switch {
		case p.ImportPath == "testing", inside == "internal/testutil", strings.HasPrefix(inside, "test/"):
			t.Errorf("%s: [binaries] is for tests and is linked into a binary by %q: remove that import",
				p.ImportPath, importers(linked, p.ImportPath))
		case ours && p.ImportPath != Module:
			if _, ok := row(inside); !ok {
				t.Errorf("%s: [import table] has no row in test/arch/table.go", inside)
			}
		}
	}
	if len(linked) < 50 {
		t.Errorf("go list names only %d packages: is ./cmd empty?", len(linked))
	}
}

// TestPureDeps holds pure packages to the table through every import: a pure package that imports a pure
// package that imports a shell is not pure.
func TestPureDeps(t *testing.T) {
	for _, p := range Table {
		if !p.Pure {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, p.Path)); err != nil {
			continue // TestSource says so
		}
		for _, dep := range goList(t, "-deps", "./"+p.Path) {
			inside, ours := strings.CutPrefix(dep.ImportPath, Module+"/")
			if r, ok := row(inside); ours && (!ok || !r.Pure) {
				t.Errorf("%s: [pure package] depends on %s, which is not pure: pass its values in", p.Path, inside)
			}
		}
	}
}

// TestCommandLinksNoMetrics keeps the daemon's metrics and server out of the program that people download, also
// by way of other modules.
func TestCommandLinksNoMetrics(t *testing.T) {
	linked := goList(t, "-deps", "./cmd/strait")
	for _, p := range linked {
		inside, _ := strings.CutPrefix(p.ImportPath, Module+"/")
		if strings.Contains(p.ImportPath, "prometheus") || below(inside, []string{"daemon/metrics", "daemon/api/server"}) {
			t.Errorf("%s: [binaries] is linked into strait by %q: remove that import", p.ImportPath, importers(linked, p.ImportPath))
		}
	}
}

func importers(all []listed, path string) (out []string) {
	for _, p := range all {
		if slices.Contains(p.Imports, path) {
			out = append(out, p.ImportPath)
		}
	}
	return out
}

func goList(t *testing.T, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Standard,Imports"}, args...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("%s: %s", strings.Join(cmd.Args, " "), exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	var list []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatalf("read the output of %s: %v", strings.Join(cmd.Args, " "), err)
		}
		list = append(list, p)
	}
}
