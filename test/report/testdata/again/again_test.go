// Package again has tests that fail, for TestRunsAgain of test/report.
package again

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// ran reports whether it was called before with this name.
func ran(t *testing.T, name string) bool {
	file := filepath.Join(os.Getenv("AGAIN_DIR"), name)
	if _, err := os.Stat(file); err == nil {
		return true
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return false
}

// TestOnce fails the first time, in a subtest.
func TestOnce(t *testing.T) {
	t.Run("sub", func(t *testing.T) {
		if !ran(t, "once") {
			t.Error("the first time")
		}
	})
}

// TestParts has a part that fails if it runs again, and one that fails if it does not.
func TestParts(t *testing.T) {
	t.Run("first", func(t *testing.T) {
		if ran(t, "first") {
			t.Error("again")
		}
	})
	t.Run("second", func(t *testing.T) {
		if !ran(t, "second") {
			t.Error("the first time")
		}
	})
}

func TestAlways(t *testing.T) { t.Error("every time") }

func TestPasses(t *testing.T) {}

func TestHangs(t *testing.T) {
	t.Run("sub", func(t *testing.T) {
		t.Log("before it hangs")
		time.Sleep(time.Hour)
	})
}
