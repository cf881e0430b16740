// Package again has tests that fail, for TestRunsAgain of test/report.
package again

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestOnce fails the first time, in a subtest.
func TestOnce(t *testing.T) {
	t.Run("sub", func(t *testing.T) {
		file := filepath.Join(os.Getenv("AGAIN_DIR"), "ran")
		if _, err := os.Stat(file); err == nil {
			return
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Error("the first time")
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
