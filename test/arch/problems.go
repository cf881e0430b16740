package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// checkProblemCodes finds Problems that are written down without a code.
func checkProblemCodes(f *File) []Violation {
	if f.Test {
		return nil
	}
	var out []Violation
	check := func(l *ast.CompositeLit) {
		if e := objectOf(l); e != nil && !slices.Contains(textObjects, f.Path) {
			out = append(out, Violation{f.at(l.Pos()), "problem object",
				"a Problem whose Object is put together here: use the Problem method of a problem.Ref, which sets the parts and the text"})
		}
		hasCode := slices.ContainsFunc(l.Elts, func(e ast.Expr) bool {
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok {
				return false
			}
			key, ok := kv.Key.(*ast.Ident)
			return ok && key.Name == "Code"
		})
		if len(l.Elts) > 0 && !hasCode {
			out = append(out, Violation{f.at(l.Pos()), "problem code",
				"a Problem without a code: give it one of internal/problem/code.go, or a new one with its section in docs/problems.md"})
		}
	}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		l, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if isProblem(l.Type) {
			check(l)
		}
		if list, ok := l.Type.(*ast.ArrayType); ok && isProblem(list.Elt) {
			for _, e := range l.Elts {
				if inner, ok := e.(*ast.CompositeLit); ok && inner.Type == nil {
					check(inner)
				}
			}
		}
		return true
	})
	return out
}

// textObjects are files whose Problems name objects that have no Ref, such as a place in a file of YAML.
var textObjects = []string{
	"clustermesh/manifest/store.go", "clustermesh/manifest/explain.go", "clustermesh/manifest/decode.go",
	"clustermesh/record/sift.go", "clustermesh/authority/admit.go", "clustermesh/kube/leader.go",
	"clustermesh/kube/mirrorer/mirrorer.go", "clustermesh/kube/gkewriter/gkewriter.go", "clustermesh/kube/writer/problem.go", "clustermesh/kube/write/passes.go",
}

// objectOf returns the Object of a Problem if it is not a constant text.
func objectOf(l *ast.CompositeLit) ast.Expr {
	for _, e := range l.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, ok := kv.Key.(*ast.Ident)
		if _, constant := kv.Value.(*ast.BasicLit); ok && key.Name == "Object" && !constant {
			return kv.Value
		}
	}
	return nil
}

// isProblem reports whether a type is written as problem.Problem or as its alias.
func isProblem(t ast.Expr) bool {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name == "Problem"
	case *ast.SelectorExpr:
		pkg, ok := t.X.(*ast.Ident)
		return ok && t.Sel.Name == "Problem" && (pkg.Name == "problem" || pkg.Name == "clustermesh")
	}
	return false
}

// codesFile declares every code.
const codesFile = "internal/problem/code.go"

var codeSection = regexp.MustCompile(`(?m)^### (STR\d{4}): .+\n((?:[^#\n].*\n|\n)*)`)

// checkCodes compares the codes with their uses and with the sections of docs/problems.md.
func checkCodes(files []*File, page string) []Violation {
	var out []Violation
	bad := func(place, format string, args ...any) {
		out = append(out, Violation{place, "problem code", fmt.Sprintf(format, args...)})
	}
	codes, used := map[string]string{}, map[string]bool{}
	for _, f := range files {
		if f.Path == codesFile {
			codes = constants(f)
		} else if !f.Test {
			for name := range selections(f, "problem") {
				used[name] = true
			}
		}
	}
	names := map[string]string{}
	for name, code := range codes {
		if other := names[code]; other != "" {
			bad(codesFile, "%s and %s are both %s: give one another code", other, name, code)
		}
		names[code] = name
		if !used[name] {
			bad(codesFile, "no Problem has the code %s (%s): remove it, and its section", code, name)
		}
	}
	sections := map[string]bool{}
	for _, m := range codeSection.FindAllStringSubmatch(page, -1) {
		sections[m[1]] = true
		if names[m[1]] == "" {
			bad("docs/problems.md", "%s has a section, but no Problem has the code: remove it", m[1])
		}
		for _, part := range []string{"\n- **Look:** ", "\n- **Cure:** "} {
			if !strings.Contains(m[2], part) {
				bad("docs/problems.md", "the section about %s has no %s", m[1], strings.Trim(part, "\n- "))
			}
		}
	}
	for code := range names {
		if !sections[code] {
			bad("docs/problems.md", "%s has no section: say what it means, what to look at, and the cure", code)
		}
	}
	return out
}

// constants returns a file's constants that are string literals, by name.
func constants(f *File) map[string]string {
	out := map[string]string{}
	for _, d := range f.Syntax.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			for i, name := range v.Names {
				if l, ok := v.Values[i].(*ast.BasicLit); ok {
					out[name.Name], _ = strconv.Unquote(l.Value)
				}
			}
		}
	}
	return out
}

// selections returns the names that a file takes from a package.
func selections(f *File, pkg string) map[string]bool {
	out := map[string]bool{}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == pkg {
				out[s.Sel.Name] = true
			}
		}
		return true
	})
	return out
}
