package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLean: a program's module is copied without what it is built without, and with what takes its
// place.
func TestLean(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	for _, name := range []string{"go.mod", "challenge/challenge.go", "providers/dns/all.go", "providers/dns/hoster/hoster.go", "providers/http/http.go", "providers/cgo/c.go"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	if err := (lean{"example.com/m", map[string]string{"providers/dns": "package dns", "providers/cgo": "package cgo"}}).copy(from, to); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			b, _ := os.ReadFile(path)
			rel, _ := filepath.Rel(to, path)
			got = append(got, rel+"="+string(b))
		}
		return err
	})
	want := "challenge/challenge.go=challenge/challenge.go go.mod=go.mod providers/cgo/lean.go=package cgo providers/dns/lean.go=package dns providers/http/http.go=providers/http/http.go"
	if err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v, %q", err, got)
	}
}

// TestLeaner: what is built leaner is among the programs.
func TestLeaner(t *testing.T) {
	source, err := Source(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := everything.list(source)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, p := range all {
		names[p.name] = true
	}
	for name := range leaner {
		if !names[name] {
			t.Errorf("%s is not among the programs", name)
		}
	}
}
