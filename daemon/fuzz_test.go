package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzIdentity: what is left of the last life's identity is read, or is an error that names the file.
func FuzzIdentity(f *testing.F) {
	dir := f.TempDir()
	f.Add([]byte(`{"Cluster": "east", "UID": "uid", "Advertise": "192.0.2.1:7946"}`))
	f.Add([]byte(`{"Cluster": 1}`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, identityFile), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if w, err := loadWho(dir); err != nil && (w != (who{}) || !strings.Contains(err.Error(), identityFile)) {
			t.Fatalf("%+v, %v", w, err)
		}
	})
}

// FuzzSeeds: a seed is a line without its comment, and none is there twice.
func FuzzSeeds(f *testing.F) {
	f.Add("192.0.2.1:7946 # east\n\n[::1]:7946\n192.0.2.1:7946\n")
	f.Add("#\n \t\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		seen := map[string]bool{}
		for _, s := range parseSeeds(text) {
			if seen[s] || s == "" || s != strings.TrimSpace(s) || strings.ContainsAny(s, "#\n") {
				t.Fatalf("seed %q of %q", s, text)
			}
			seen[s] = true
		}
	})
}
