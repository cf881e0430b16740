package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"strait.io/strait/internal/durable"
)

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := durable.Read(path, 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := durable.Read(path, 4); err != nil || string(b) != "four" {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := durable.Read(path, 3); err == nil || b != nil {
		t.Errorf("a file that is too long: %q, %v", b, err)
	}
	if _, err := durable.Read("/dev/zero", 1<<20); err == nil {
		t.Error("a file without an end was read")
	}
}
