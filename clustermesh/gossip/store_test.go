package gossip

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestCorruptState(t *testing.T) {
	c := config(origin("a", "n1"))
	c.StateDir = t.TempDir()
	d := start(t, c)
	d.say(1)
	d.stop()
	path := filepath.Join(c.StateDir, stateFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"cut": whole[:len(whole)-3], "empty": {}, "flipped": flip(whole, len(whole)-5), "other": []byte("hello\nworld"),
	} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		g, err := New(c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if p := g.Problems(); len(p) != 1 || !strings.Contains(p[0].String(), path) || !p[0].Warning {
			t.Errorf("%s: problems %v", name, p)
		}
		if kept, err := os.ReadFile(path + ".corrupt"); err != nil || !bytes.Equal(kept, b) {
			t.Errorf("%s: not set aside: %v", name, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: still in place", name)
		}
	}
}

// TestCorruptStateIsReplaced: that the last state was lost is an event. Once a good one is on disk, nothing is wrong.
func TestCorruptStateIsReplaced(t *testing.T) {
	c := config(origin("a", "n1"))
	c.StateDir = t.TempDir()
	for _, name := range []string{stateFile, uidsFile} {
		if err := os.WriteFile(filepath.Join(c.StateDir, name), []byte("hello\nworld"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log logged
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	d := start(t, c)
	if !d.hasProblem("cannot be read", stateFile) || !d.hasProblem("UIDs") {
		t.Errorf("problems %v", d.Problems())
	}
	if text := log.String(); strings.Count(text, "level=WARN") != 2 {
		t.Errorf("the log does not keep what happened: %s", text)
	}
	d.say(1)
	eventually(t, "the good state solves it", func() bool { return len(d.Problems()) == 0 })
	if held, err := loadState(c.StateDir); err != nil || len(held) != 1 {
		t.Errorf("the new state has %d records: %v", len(held), err)
	}
	if _, err := loadUIDs(c.StateDir); err != nil {
		t.Error(err)
	}
}

// TestUIDsAreSavedAgain: what could not be saved is tried again, and stays a Problem until it is saved.
func TestUIDsAreSavedAgain(t *testing.T) {
	c := config(origin("a", "n1"))
	c.StateDir, c.UID = t.TempDir(), "uid-a"
	path := filepath.Join(c.StateDir, uidsFile)
	if err := os.MkdirAll(filepath.Join(path, "in-the-way"), 0o700); err != nil {
		t.Fatal(err)
	}
	d := start(t, c)
	for i := range 25 { // longer than the pause between two saves
		d.say(i)
		time.Sleep(100 * time.Millisecond)
		if !d.hasProblem("gossip state", uidsFile) {
			t.Fatalf("after change %d the problems are %v", i, d.Problems())
		}
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the next save solves it", func() bool { return len(d.Problems()) == 0 })
	if last, err := loadUIDs(c.StateDir); err != nil || last["a"] != "uid-a" {
		t.Errorf("saved %v: %v", last, err)
	}
}

// logged collects what a daemon logs.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func flip(b []byte, i int) []byte {
	b = bytes.Clone(b)
	b[i] ^= 1
	return b
}
