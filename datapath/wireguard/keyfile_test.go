package wireguard

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"strait.io/strait/internal/key"
)

func TestLoadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "key")
	k, err := LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700 | fs.ModeDir} {
		if st, err := os.Stat(file); err != nil || st.Mode() != want {
			t.Errorf("%s: mode %v, %v, want %v", file, st.Mode(), err, want)
		}
	}
	if again, err := LoadKey(path); err != nil || again != k {
		t.Errorf("the second time: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) != 0 {
		t.Errorf("temporary files left: %v", left)
	}
}

func TestLoadKeyRefuses(t *testing.T) {
	dir := t.TempDir()
	secret, err := LoadKey(filepath.Join(dir, "good"))
	if err != nil {
		t.Fatal(err)
	}
	text := secret.Base64()
	for name, c := range map[string]struct {
		mode    fs.FileMode
		text    string
		message string
	}{
		"group":   {0o640, text, "mode 0640, so others can use it; run chmod 600"},
		"world":   {0o604, text, "mode 0604"},
		"empty":   {0o600, "", "not a WireGuard key"},
		"garbage": {0o600, text[:20], "not a WireGuard key"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		k, err := LoadKey(path)
		if err == nil || !strings.Contains(err.Error(), c.message) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want it to name the file and say %q", name, err, c.message)
		}
		if err != nil && c.text != "" && strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: the error shows the key", name)
		}
		if k != (key.Private{}) {
			t.Errorf("%s: a key is returned", name)
		}
		if after, _ := os.ReadFile(path); string(after) != c.text {
			t.Errorf("%s: the file was changed", name)
		}
	}
	if _, err := LoadKey(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := LoadKey(""); err == nil {
		t.Error("no path is accepted")
	}
}

func TestLoadKeyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	keys := make([]key.Private, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			k, err := LoadKey(path)
			if err != nil {
				t.Error(err)
			}
			keys[i] = k
		})
	}
	wg.Wait()
	for _, k := range keys {
		if k != keys[0] || k == (key.Private{}) {
			t.Fatal("not all got the same key")
		}
	}
}
