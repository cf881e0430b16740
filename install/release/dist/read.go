package main

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"strait.io/strait/install/chart"
	"strait.io/strait/install/release"
)

// lines reads a file's lines; none if no file is named.
func lines(file string) ([]string, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }), err
}

// folder reads all files of a folder, in the order of their names.
func folder(dir string) (out []release.File, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		out = append(out, release.File{Name: name, Text: text})
		return err
	})
	if err == nil && len(out) == 0 {
		err = errors.New(dir + " is empty")
	}
	return out, err
}

// papers are what archives have beside their program.
type papers struct{ licence, readme release.File }

func readPapers() (p papers, err error) {
	for name, to := range map[string]*release.File{"LICENSE": &p.licence, "README.md": &p.readme} {
		to.Name = name
		text, e := os.ReadFile(name)
		to.Text, err = text, errors.Join(err, e)
	}
	return p, err
}

// chartFiles are those of strait's chart, in the order of their names.
func chartFiles() (out []release.File, err error) {
	files, err := chart.Files()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, release.File{Name: name, Text: files[name]})
	}
	return out, err
}
