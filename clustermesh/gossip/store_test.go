package gossip

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/clustermesh/gossip/statedir"
	"strait.io/strait/clustermesh/replica"
)

// Files of the state directory.
const (
	stateFile     = "replica.cbor"
	uidsFile      = "clusters.json"
	distancesFile = "distances.json"
	statementFile = "statement.cbor"
)

// loadState reads the records in a state directory.
func loadState(dir string) ([]replica.Entry, error) {
	_, entries, err := statedir.OpenRecords(dir)
	return entries, err
}

// saveState writes records as an earlier life would have.
func saveState(t testing.TB, dir string, entries []replica.Entry) {
	t.Helper()
	r, _, _ := statedir.OpenRecords(dir)
	if err := r.Replace(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
}

// TestCorruptState: a daemon starts with any file, and says what of it cannot be read. A file of which nothing
// can be used is set aside; of another, what is before the damage is used.
func TestCorruptState(t *testing.T) {
	c := config(origin("a", "n1"))
	c.StateDir = t.TempDir()
	path := filepath.Join(c.StateDir, stateFile)
	saveState(t, c.StateDir, someEntries(t, 3))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		b    []byte
		left int // records
	}{
		"cut": {whole[:len(whole)-3], 2}, "flipped": {flip(whole, len(whole)-5), 2}, "zeros": {append(slices.Clone(whole), make([]byte, 100)...), 3},
		"empty": {[]byte{}, 0}, "other": {[]byte("hello\nworld"), 0}, "former": {[]byte("strait replica 1 00\nxyz"), 0},
	} {
		if err := os.WriteFile(path, x.b, 0o600); err != nil {
			t.Fatal(err)
		}
		g, err := New(c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if p := g.Problems(); len(p) != 1 || !strings.Contains(p[0].String(), path) || !p[0].Warning {
			t.Errorf("%s: problems %v", name, p)
		}
		if n := g.State().Records.Len(); n != x.left {
			t.Errorf("%s: it starts with %d records, want %d", name, n, x.left)
		}
		_, err = os.Stat(path)
		if kept, failed := os.ReadFile(path + ".corrupt"); x.left == 0 && (failed != nil || !bytes.Equal(kept, x.b) || err == nil) {
			t.Errorf("%s: not set aside: %v", name, failed)
		}
		if x.left > 0 && err != nil {
			t.Errorf("%s: what can be read is set aside", name)
		}
	}
}

// TestTornState: after a crash in the middle of a write, the next write drops what is left of it.
func TestTornState(t *testing.T) {
	t.Parallel()
	c := config(origin("a", "n1"))
	c.StateDir = t.TempDir()
	path := filepath.Join(c.StateDir, stateFile)
	saveState(t, c.StateDir, someEntries(t, 3))
	whole, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, whole[:len(whole)-3], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := start(t, c)
	if !d.hasProblem("cannot be read", path, "2 keys") {
		t.Errorf("problems %v", d.Problems())
	}
	d.say(1)
	eventually(t, "the next write solves it", func() bool { return len(d.Problems()) == 0 })
	if held, err := loadState(c.StateDir); err != nil || len(held) != 3 {
		t.Errorf("the state has %d records: %v", len(held), err)
	}
}

// TestRefusedRecordIsDropped: what was saved and is not held does not stay in the file.
func TestRefusedRecordIsDropped(t *testing.T) {
	t.Parallel()
	c := signing(config(origin("west", "n1")), pinned("west"))
	c.StateDir = t.TempDir()
	saveState(t, c.StateDir, someEntries(t, 3)) // of cluster a, without seals
	d := start(t, c)
	d.tell(0, 1)
	eventually(t, "its own record replaces the others", func() bool {
		held, err := loadState(c.StateDir)
		return err == nil && len(held) > 0 && !slices.ContainsFunc(held, func(e replica.Entry) bool { return e.Record.Origin.Cluster == "a" })
	})
}

// TestCorruptStateIsReplaced: that the last state was lost is an event. Once a good one is on disk, nothing is wrong.
func TestCorruptStateIsReplaced(t *testing.T) {
	t.Parallel()
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
	if _, err := statedir.LoadUIDs(c.StateDir); err != nil {
		t.Error(err)
	}
}

// TestUIDsAreSavedAgain: what could not be saved is tried again, and stays a Problem until it is saved.
func TestUIDsAreSavedAgain(t *testing.T) {
	t.Parallel()
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
	if last, err := statedir.LoadUIDs(c.StateDir); err != nil || last["a"] != "uid-a" {
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
