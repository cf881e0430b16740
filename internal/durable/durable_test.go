package durable_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"strait.io/strait/internal/durable"
)

func text(s string) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.WriteString(s)
		return err
	}
}

func TestReplace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	path := filepath.Join(dir, "file")
	full := errors.New("no space left")
	for _, c := range []struct {
		name  string
		write func(*os.File) error
		want  string
		err   error
	}{
		{"a new file in a new directory", text("first, and long"), "first, and long", nil},
		{"a shorter one in its place", text("second"), "second", nil},
		{"a write that fails half way leaves the old", func(f *os.File) error { return errors.Join(text("thi")(f), full) }, "second", full},
		{"and does not hinder the next", text("third"), "third", nil},
	} {
		if err := durable.Replace(path, c.write); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.name, err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Errorf("%s: the directory has %v, %v", c.name, all, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// What stands in the way of the rename leaves no half file behind.
func TestReplaceRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.MkdirAll(filepath.Join(path, "not empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.Replace(path, text("x")); err == nil {
		t.Error("a directory was replaced")
	}
	if _, err := os.Stat(path + ".tmp"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a half file is left: %v", err)
	}
}
