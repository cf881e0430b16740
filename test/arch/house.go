package arch

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// checkLength finds files that are too long to hold only one thing.
func checkLength(f *File) []Violation {
	if f.Lines <= MaxLines || Long[f.Path] != "" {
		return nil
	}
	return []Violation{{f.Path, "file length", fmt.Sprintf(
		"%d lines, more than %d: split the file by topic", f.Lines, MaxLines)}}
}

// checkFunctions finds functions that do not fit on a screen. Tests are exempt: their tables can be
// long.
func checkFunctions(f *File) []Violation {
	if f.Test {
		return nil
	}
	var out []Violation
	for _, d := range f.Syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1
		if lines > MaxFunction {
			out = append(out, Violation{f.at(fn.Pos()), "function length", fmt.Sprintf(
				"%s has %d lines, more than %d: move a part into a function of its own", fn.Name.Name, lines, MaxFunction)})
		}
	}
	return out
}

// checkSkips finds tests that skip without a reason.
func checkSkips(f *File) []Violation {
	var out []Violation
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) > 0 {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if ok && (sel.Sel.Name == "SkipNow" || sel.Sel.Name == "Skip" && f.Test) {
			out = append(out, Violation{f.at(call.Pos()), "skip",
				"a skip without a reason: say what is missing; use testutil.Missing, so that CI fails"})
		}
		return true
	})
	return out
}

// checkFolders applies the rules for a package as a whole.
func checkFolders(files []*File) []Violation {
	var out []Violation
	for folder, in := range byFolder(files) {
		out = append(out, checkName(folder, in)...)
		out = append(out, checkComment(folder, in)...)
	}
	return out
}

func checkName(folder string, in []*File) []Violation {
	names := append(strings.Split(folder, "/"), strings.TrimSuffix(in[0].Syntax.Name.Name, "_test"))
	for _, n := range names {
		if slices.Contains(badNames, n) {
			return []Violation{{folder, "package name", fmt.Sprintf(
				"%q says nothing about the contents: name the package after what it provides", n)}}
		}
	}
	return nil
}

// checkComment requires exactly one package comment, in the form that godoc expects. A comment in a
// test file counts only if the package has only tests.
func checkComment(folder string, in []*File) []Violation {
	if slices.ContainsFunc(in, func(f *File) bool { return !f.Test }) {
		in = slices.DeleteFunc(slices.Clone(in), func(f *File) bool { return f.Test })
	}
	in = slices.DeleteFunc(slices.Clone(in), func(f *File) bool { return f.Generated })
	if len(in) == 0 {
		return nil
	}
	var where []string
	var text string
	for _, f := range in {
		if f.Syntax.Doc != nil {
			where = append(where, path.Base(f.Path))
			text = f.Syntax.Doc.Text()
		}
	}
	start := "Package " + in[0].Syntax.Name.Name + " "
	if in[0].Syntax.Name.Name == "main" {
		start = "Command " + path.Base(folder) + " "
	}
	switch {
	case len(where) == 0:
		return []Violation{{folder, "package comment",
			fmt.Sprintf("none: write one that starts with %q (role, inputs, outputs, what it must not know)", start)}}
	case len(where) > 1:
		slices.Sort(where)
		return []Violation{{folder, "package comment",
			fmt.Sprintf("%d of them, in %s: keep one", len(where), strings.Join(where, ", "))}}
	case !strings.HasPrefix(text, start):
		return []Violation{{folder + "/" + where[0], "package comment", fmt.Sprintf("must start with %q", start)}}
	}
	return nil
}
