package main

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCommitted: the files in dist are what their source builds to.
func TestCommitted(t *testing.T) {
	built, err := build("..")
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadDir("../dist")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range committed {
		if built[f.Name()] == nil {
			t.Errorf("web/dist/%s is built from nothing: remove it", f.Name())
		}
	}
	for name, want := range built {
		got, err := os.ReadFile(filepath.Join("../dist", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("web/dist/%s differs from what web/src builds to: run 'go generate ./web' and commit the result", name)
		}
	}
}

// maxSize is how large the page may be, compressed, in bytes.
const maxSize = 58 << 10

// TestSelfContained: the page is small, loads nothing from elsewhere, and has what its policy
// forbids nowhere.
func TestSelfContained(t *testing.T) {
	var size bytes.Buffer
	w := gzip.NewWriter(&size)
	remote := regexp.MustCompile(`(?:src|href)=["']?(?:https?:)?//|url\(|@import|\beval\(|new Function|innerHTML\s*=|https?://[a-z0-9.-]+`)
	err := fs.WalkDir(os.DirFS("../dist"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join("../dist", name))
		if err != nil {
			return err
		}
		for _, found := range remote.FindAllString(string(text), -1) {
			// Names of XML, which nothing loads, and Preact's own property for who asks for it.
			if !strings.HasPrefix(found, "http://www.w3.org") && found != "innerHTML=" {
				t.Errorf("web/dist/%s has %q", name, found)
			}
		}
		_, err = w.Write(text)
		return err
	})
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	if size.Len() > maxSize {
		t.Errorf("the page is %d bytes, compressed: at most %d", size.Len(), maxSize)
	}
	t.Logf("%d bytes, compressed", size.Len())
}

// TestBadSource: an error names the file and the line.
func TestBadSource(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("..")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "src", "app.tsx"), []byte("const = 1;\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := build(dir); err == nil || !strings.Contains(err.Error(), "src/app.tsx:1: ") {
		t.Errorf("a syntax error is reported as %v", err)
	}
}
