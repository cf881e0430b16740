package arch

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// impure are standard packages, including those below them, that act or provide the means to act.
var impure = []string{
	"context", "log", "net", "os", "syscall", "crypto/rand", "io/ioutil", "runtime", "sync", "plugin", "testing",
	"flag", "expvar", "crypto/tls", "database", "C",
}

// harmless are packages below an impure one that only compute.
var harmless = []string{"net/netip", "net/url"}

// computing are packages of other modules, including those below them, that only compute. A pure
// package imports no others: what a dependency does is not seen in the code that calls it.
var computing = []string{
	"github.com/DataDog/datadog-agent/pkg/template/text", "github.com/fxamacker/cbor/v2", "golang.org/x/mod/semver", "golang.org/x/net/html", "golang.org/x/net/publicsuffix", "filippo.io/edwards25519", "github.com/cespare/xxhash/v2",
	"k8s.io/api", "k8s.io/apimachinery/pkg/api", "k8s.io/apimachinery/pkg/apis", "k8s.io/apimachinery/pkg/labels",
	"k8s.io/apimachinery/pkg/runtime", "k8s.io/apimachinery/pkg/types", "k8s.io/apimachinery/pkg/util/intstr",
	"k8s.io/apimachinery/pkg/util/json", "k8s.io/apimachinery/pkg/util/validation", "k8s.io/apimachinery/pkg/util/version",
	"k8s.io/apimachinery/pkg/util/yaml", "sigs.k8s.io/mcs-api/pkg/apis", "sigs.k8s.io/yaml",
}

// acting are functions of packages that otherwise only compute: they read the clock, wait, read
// files or print.
var acting = map[string][]string{
	"time":                                 {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "LoadLocation"},
	"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
	"fmt":                                  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"path/filepath":                        {"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"},
	"debug/elf":                            {"Open"},
	"crypto/ed25519":                       {"GenerateKey"},
	"crypto/x509":                          {"SystemCertPool"},
}

// random are packages with a global source of randomness.
var random = []string{"math/rand"}

// seeded are the names in math/rand that take their randomness as an argument.
var seeded = []string{"New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "Source64", "Zipf", "PCG", "ChaCha8"}

// checkPure checks that a file of a pure package does not act. Tests are allowed to.
func checkPure(f *File) []Violation {
	if p, ok := row(f.Folder); !ok || !p.Pure || f.Test {
		return nil
	}
	var out []Violation
	// For the packages that are judged by what is called: the file's name for it → import path.
	calls := map[string]string{}
	for _, i := range f.imports() {
		_, some := acting[i.Path]
		if some || below(i.Path, random) {
			calls[i.Name] = i.Path
			if i.Name == "." {
				out = append(out, Violation{f.at(i.Pos), "pure package", fmt.Sprintf(
					"%s is pure and must import %q under a name, so that its clock and randomness are seen", f.Folder, i.Path)})
			}
		}
		switch {
		case below(i.Path, impure) && !below(i.Path, harmless):
			out = append(out, Violation{f.at(i.Pos), "pure package", fmt.Sprintf(
				"%s is pure and must not import %q: return a decision and let a shell carry it out", f.Folder, i.Path)})
		case isForeign(i.Path) && !below(i.Path, computing):
			out = append(out, Violation{f.at(i.Pos), "pure package", fmt.Sprintf(
				"%s is pure and must not import %q: let a shell do so; or add it to computing in test/arch/pure.go, if it only computes", f.Folder, i.Path)})
		}
	}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			out = append(out, Violation{f.at(n.Pos()), "pure package",
				f.Folder + " is pure and must not start a goroutine: only daemon's Run loops do"})
		case *ast.ChanType, *ast.SelectStmt:
			out = append(out, Violation{f.at(n.Pos()), "pure package",
				f.Folder + " is pure and must not use channels: an event comes as an argument, and an action is a result"})
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && acts(calls[x.Name], n.Sel.Name) {
				out = append(out, Violation{f.at(n.Pos()), "pure package", fmt.Sprintf(
					"%s is pure and must not use %s.%s: take the time, the randomness or the text as an argument",
					f.Folder, x.Name, n.Sel.Name)})
			}
		}
		return true
	})
	return out
}

// acts reports whether a name of a package does more than to compute.
func acts(path, name string) bool {
	if below(path, random) {
		return !slices.Contains(seeded, name)
	}
	return slices.Contains(acting[path], name)
}

// isForeign reports whether an import path is of another module: the first element of those is a domain.
func isForeign(path string) bool {
	domain, _, _ := strings.Cut(path, "/")
	return strings.Contains(domain, ".") && !below(path, []string{Module})
}

func below(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return path == r || strings.HasPrefix(path, r+"/") })
}
