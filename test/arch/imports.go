package arch

import (
	"fmt"
	"slices"
	"strings"
)

// row returns a folder's row of the table, and whether it has one.
func row(folder string) (Package, bool) {
	i := slices.IndexFunc(Table, func(p Package) bool { return p.Path == folder })
	if i < 0 {
		return Package{}, false
	}
	return Table[i], true
}

// checkImports checks a file's imports against the table and the owners of dependencies.
func checkImports(f *File) []Violation {
	var out []Violation
	for _, i := range f.imports() {
		var message string
		rule := "import table"
		switch inside, ours := strings.CutPrefix(i.Path, Module+"/"); {
		case ours:
			message = foreignPackage(f, inside)
		case i.Path == Module:
			message = "the module's root is not a package"
		case isStd(i.Path):
			continue
		default:
			rule = "dependency owner"
			message = foreignDependency(f, i.Path)
		}
		if message != "" {
			out = append(out, Violation{f.at(i.Pos), rule, message})
		}
	}
	return out
}

// foreignPackage returns what is wrong with a file's import of a package of the module; "" if
// nothing.
func foreignPackage(f *File, inside string) string {
	p, ok := row(f.Folder)
	if !ok {
		return "" // checkTable reports it once for the folder
	}
	isLeaf := slices.Contains(leaves, f.Folder)
	allowed := slices.Clone(p.Imports)
	if !isLeaf {
		allowed = append(allowed, leaves...)
	}
	if f.Test {
		allowed = append(allowed, p.Tests...)
		// An external test imports the package that it tests.
		allowed = append(allowed, "internal/testutil", f.Folder)
	}
	if slices.Contains(allowed, inside) {
		return ""
	}
	if inside == "internal/testutil" {
		return "internal/testutil is for tests: move this into a _test.go file"
	}
	return fmt.Sprintf("%s must not import %s: pass the value in from a package that may know both; "+
		"to change the architecture, edit test/arch/table.go and ARCHITECTURE.md", f.Folder, inside)
}

// foreignDependency returns what is wrong with a file's import of third-party code; "" if nothing.
func foreignDependency(f *File, path string) string {
	d, ok := dependency(path)
	switch {
	case !ok:
		return fmt.Sprintf("%s is a new dependency: add it to test/arch/table.go with the one package that owns it", path)
	case slices.Contains(d.Owners, f.Folder), f.Test && (d.Test || slices.Contains(d.Tests, f.Folder)):
		return ""
	case d.Test:
		return fmt.Sprintf("%s is for tests: move this into a _test.go file", path)
	}
	return fmt.Sprintf("%s belongs to %s: call that package instead", path, strings.Join(d.Owners, ", "))
}

// dependency returns the most specific row for an import path, and whether there is one.
func dependency(path string) (best Dependency, ok bool) {
	for _, d := range Dependencies {
		if (path == d.Path || strings.HasPrefix(path, d.Path+"/")) && len(d.Path) > len(best.Path) {
			best, ok = d, true
		}
	}
	return best, ok
}

// isStd reports whether an import path is in the standard library. It uses the go command's own
// rule: the first element has no dot.
func isStd(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// checkTable checks the table against the tree: every package needs a row, and every row a package.
func checkTable(files []*File) []Violation {
	var out []Violation
	folders := byFolder(files)
	for folder := range folders {
		if _, ok := row(folder); !ok {
			out = append(out, Violation{folder, "import table",
				"the package has no row: add it to test/arch/table.go with what it may import"})
		}
	}
	for _, p := range Table {
		if _, ok := folders[p.Path]; !ok {
			out = append(out, Violation{"test/arch/table.go", "import table",
				fmt.Sprintf("the row %s names no package: remove it", p.Path)})
		}
	}
	for _, d := range Dependencies {
		if len(d.Owners) > 1 && d.Why == "" {
			out = append(out, Violation{"test/arch/table.go", "dependency owner",
				fmt.Sprintf("%s has %d owners and no Why: leave it to one package, or say why that is not enough", d.Path, len(d.Owners))})
		}
	}
	return append(out, checkUsed(files)...)
}

// checkUsed finds permissions that no file uses: a table that allows more than the code needs says
// nothing about the code.
func checkUsed(files []*File) []Violation {
	used := map[[2]string]bool{}
	for _, f := range files {
		for _, i := range f.imports() {
			if d, ok := dependency(i.Path); ok {
				used[[2]string{f.Folder, d.Path}] = true
			}
			if inside, ours := strings.CutPrefix(i.Path, Module+"/"); ours {
				used[[2]string{f.Folder, inside}] = true
			}
		}
	}
	var out []Violation
	unused := func(rule, who, what string) {
		if !used[[2]string{who, what}] {
			out = append(out, Violation{"test/arch/table.go", rule,
				fmt.Sprintf("%s may import %s and does not: remove the permission", who, what)})
		}
	}
	for _, p := range Table {
		for _, i := range slices.Concat(p.Imports, p.Tests) {
			unused("import table", p.Path, i)
		}
	}
	for _, d := range Dependencies {
		for _, o := range slices.Concat(d.Owners, d.Tests) {
			unused("dependency owner", o, d.Path)
		}
	}
	return out
}
