package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"strait.io/strait/daemon/trustlevel"
)

// TestPinsAndMembers: the files of a volume are read as a kubelet swaps them, all at once. Without
// any, the pins are what they were; without pins, members wait for them.
func TestPinsAndMembers(t *testing.T) {
	dir := t.TempDir()
	pins, volume := filepath.Join(dir, "pins.yaml"), filepath.Join(dir, "members")
	read := pinsAndMembers(AuthorityConfig{PinsFile: pins, MembersDir: volume})
	write := func(path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	is := func(what, want string) {
		t.Helper()
		if got, err := read(); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", what, got, err, want)
		}
	}
	if _, err := read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without any file: %v", err)
	}
	write(pins, "p")
	is("without a directory", "p")
	// As a kubelet mounts a ConfigMap.
	swap := func(name string, files map[string]string) {
		t.Helper()
		for file, text := range files {
			write(filepath.Join(volume, name, file), text)
			_ = os.Symlink(filepath.Join("..data", file), filepath.Join(volume, file)) // it is there already
		}
		if err := errors.Join(os.Symlink(name, filepath.Join(volume, "..next")), os.Rename(filepath.Join(volume, "..next"), filepath.Join(volume, "..data"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(volume, "..one"), 0o755); err != nil {
		t.Fatal(err)
	}
	swap("..one", nil)
	is("with an empty volume", "p")
	swap("..two", map[string]string{"a.yaml": "a", "b.yaml": "b"})
	is("with members", trustlevel.Listed("p", map[string]string{"a.yaml": "a", "b.yaml": "b"}))
	swap("..three", map[string]string{"b.yaml": "c"}) // the link of a.yaml leads nowhere for a moment
	is("with others", trustlevel.Listed("p", map[string]string{"b.yaml": "c"}))
	if err := os.Remove(pins); err != nil {
		t.Fatal(err)
	}
	is("before there are pins", trustlevel.Listed("", map[string]string{"b.yaml": "c"}))
	if pinsAndMembers(AuthorityConfig{}) != nil {
		t.Error("without a file, there is nothing to read")
	}
	write(filepath.Join(dir, "plain", "a.yaml"), "a")
	write(filepath.Join(dir, "plain", ".hidden"), "x")
	if got, err := readMembers(filepath.Join(dir, "plain")); len(got) != 1 || got["a.yaml"] != "a" || err != nil {
		t.Errorf("a directory that is no volume: %v, %v", got, err)
	}
}
