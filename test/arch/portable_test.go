package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestPortable type-checks strait, and the tests of all of our packages that are linked into it, for the systems
// of people's own machines: what needs Linux must stand in files for Linux. Function bodies of other modules and
// of the standard library are left out, which makes this a matter of seconds.
func TestPortable(t *testing.T) {
	for _, system := range []string{"darwin/arm64", "windows/amd64"} {
		t.Run(system, func(t *testing.T) {
			goos, arch, _ := strings.Cut(system, "/")
			env := append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0")
			list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/strait")
			list.Dir, list.Env = root, env
			linked, err := list.Output()
			if err != nil {
				t.Fatal(err)
			}
			var ours []string
			for path := range strings.FieldsSeq(string(linked)) {
				if strings.HasPrefix(path, Module+"/") {
					ours = append(ours, path)
				}
			}
			if len(ours) < 10 {
				t.Fatalf("only %d packages of ours are linked into strait", len(ours))
			}
			for _, e := range typeErrors(t, env, ours) {
				t.Errorf("%s: %s: move what needs Linux to a file for Linux, and give the others one that says so", system, e)
			}
		})
	}
}

// typeErrors returns what the compiler would say of our packages and their tests.
func typeErrors(t *testing.T, env, patterns []string) (out []packages.Error) {
	ours, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	outline := func(fset *token.FileSet, name string, text []byte) (*ast.File, error) {
		f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if f != nil && !strings.HasPrefix(name, ours+string(filepath.Separator)) {
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok {
					d.Body = nil
				}
			}
		}
		return f, err
	}
	config := &packages.Config{Mode: packages.LoadAllSyntax, Tests: true, Dir: root, Env: env, ParseFile: outline}
	loaded, err := packages.Load(config, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	packages.Visit(loaded, nil, func(p *packages.Package) {
		// The go command makes the packages of the name PATH.test.
		if strings.HasPrefix(p.PkgPath, Module+"/") && !strings.HasSuffix(p.PkgPath, ".test") {
			out = append(out, p.Errors...)
		}
	})
	return out
}
