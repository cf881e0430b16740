package socklb

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestModes: only root can open what is pinned, whatever umask the daemon has, also if someone has
// loosened the modes since.
func TestModes(t *testing.T) {
	if !inside(t) {
		return
	}
	defer unix.Umask(unix.Umask(0))
	cfg := config(t)
	cfg.MaxFrontends, cfg.MaxBackends = smallFrontends, smallBackends
	cfg.Pins = filepath.Join(cfg.Pins, "parent", "pins")
	if err := opened(t, cfg).Close(); err != nil {
		t.Fatal(err)
	}
	files := checkModes(t, cfg.Pins)
	if len(files) < 20 {
		t.Fatalf("only %d pins and folders: %v", len(files), files)
	}
	for _, f := range files {
		if err := os.Chmod(f, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := opened(t, cfg).Close(); err != nil {
		t.Fatal(err)
	}
	checkModes(t, cfg.Pins)
}

// checkModes returns all folders and pins below dir, and dir itself. Symbolic links have no mode.
func checkModes(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() == fs.ModeSymlink {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %04o, want %04o", path, got, want)
		}
		files = append(files, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
