package arch

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// impure are standard packages (with what is below them) that act, or carry the means to act.
var impure = []string{
	"context", "log", "net", "os", "syscall", "crypto/rand", "io/ioutil", "runtime", "sync", "plugin", "testing",
}

// harmless are packages below an impure one that only compute.
var harmless = []string{"net/netip", "net/url"}

// clock are the functions of package time that read or wait for the clock; its types are plain values.
var clock = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "LoadLocation",
}

// seeded are the functions of math/rand that take their randomness as an argument.
var seeded = []string{"New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "Source64", "Zipf", "PCG", "ChaCha8"}

// checkPure holds a file of a pure package to its promise. Tests may act.
func checkPure(f *File) []Violation {
	if p, ok := row(f.Folder); !ok || !p.Pure || f.Test {
		return nil
	}
	var out []Violation
	calls := map[string]string{} // what the file calls it → import path, of packages judged by the call
	for _, i := range f.imports() {
		switch {
		case i.Path == "time" || i.Path == "math/rand" || i.Path == "math/rand/v2":
			calls[i.Name] = i.Path
		case below(i.Path, impure) && !below(i.Path, harmless):
			out = append(out, Violation{f.at(i.Pos), "pure package", fmt.Sprintf(
				"%s is pure and must not import %q: return what to do, and let a shell do it", f.Folder, i.Path)})
		}
	}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			out = append(out, Violation{f.at(n.Pos()), "pure package",
				f.Folder + " is pure and must not start a goroutine: only daemon's Run loops do"})
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

// acts reports that a name of a package reads the clock or the global randomness.
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
