package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Violation is one place that breaks a rule.
type Violation struct {
	// Place is a file of the module, with a line if there is one, or a folder.
	Place string
	Rule  string
	// Message says what is wrong there and what to do.
	Message string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: [%s] %s", v.Place, v.Rule, v.Message)
}

// File is one parsed Go file of the module.
type File struct {
	// Path is relative to the module's root. Folder is its directory ("." for the root).
	Path, Folder string
	Test         bool
	Generated    bool
	Lines        int
	Syntax       *ast.File
	fset         *token.FileSet
}

func (f *File) at(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", f.Path, f.fset.Position(pos).Line)
}

// Import is one import of a file.
type Import struct {
	Path string
	// Name is what the file calls it.
	Name string
	Pos  token.Pos
}

func (f *File) imports() []Import {
	var out []Import
	for _, spec := range f.Syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // cannot happen: the parser has checked it
		}
		name := path.Base(p)
		if strings.HasPrefix(name, "v") && strings.Trim(name[1:], "0123456789") == "" {
			name = path.Base(path.Dir(p)) // math/rand/v2 is called rand
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		out = append(out, Import{Path: p, Name: name, Pos: spec.Pos()})
	}
	return out
}

// Load parses every Go file below root, whatever its build constraints. It skips folders that the
// go command ignores too: testdata, and names that start with a dot or an underscore.
func Load(root fs.FS) ([]*File, error) {
	var files []*File
	fset := token.NewFileSet()
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != "." && (d.Name() == "testdata" || d.Name()[0] == '.' || d.Name()[0] == '_') {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(p) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		syntax, err := parser.ParseFile(fset, p, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, &File{
			Path:      p,
			Folder:    path.Dir(p),
			Test:      strings.HasSuffix(p, "_test.go"),
			Generated: ast.IsGenerated(syntax),
			Lines:     strings.Count(string(text), "\n"),
			Syntax:    syntax,
			fset:      fset,
		})
		return nil
	})
	return files, err
}

// Check applies every rule to the files and returns the violations, sorted.
func Check(files []*File) []Violation {
	var out []Violation
	for _, f := range files {
		out = append(out, checkImports(f)...)
		if f.Generated {
			continue
		}
		out = append(out, checkPure(f)...)
		out = append(out, checkLength(f)...)
		out = append(out, checkFunctions(f)...)
		out = append(out, checkSkips(f)...)
		out = append(out, checkProblemCodes(f)...)
	}
	out = append(out, checkFolders(files)...)
	out = append(out, checkTable(files)...)
	slices.SortFunc(out, func(a, b Violation) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// byFolder groups files by folder, and so by package.
func byFolder(files []*File) map[string][]*File {
	out := map[string][]*File{}
	for _, f := range files {
		out[f.Folder] = append(out[f.Folder], f)
	}
	return out
}
