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
}

// harmless are packages below an impure one that only compute.
var harmless = []string{"net/netip", "net/url"}

// clock are the functions of package time that read the clock or wait. The package's types are
// plain values and allowed. LoadLocation reads files.
var clock = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "LoadLocation",
}

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
		switch {
		case i.Path == "time" || i.Path == "math/rand" || i.Path == "math/rand/v2":
			calls[i.Name] = i.Path
			if i.Name == "." {
				out = append(out, Violation{f.at(i.Pos), "pure package", fmt.Sprintf(
					"%s is pure and must import %q under a name, so that its clock and randomness are seen", f.Folder, i.Path)})
			}
		case below(i.Path, impure) && !below(i.Path, harmless):
			out = append(out, Violation{f.at(i.Pos), "pure package", fmt.Sprintf(
				"%s is pure and must not import %q: return a decision and let a shell carry it out", f.Folder, i.Path)})
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
					"%s is pure and must not use %s.%s: take the time or the randomness as an argument",
					f.Folder, x.Name, n.Sel.Name)})
			}
		}
		return true
	})
	return out
}

// acts reports whether a name of a package reads the clock or the global random source.
func acts(path, name string) bool {
	switch path {
	case "time":
		return slices.Contains(clock, name)
	case "math/rand", "math/rand/v2":
		return !slices.Contains(seeded, name)
	}
	return false
}

func below(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return path == r || strings.HasPrefix(path, r+"/") })
}
