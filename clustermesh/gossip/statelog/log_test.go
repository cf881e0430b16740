package statelog

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

func seq(ops []Op) iter.Seq2[Op, error] {
	return func(yield func(Op, error) bool) {
		for _, op := range ops {
			if !yield(op, nil) {
				return
			}
		}
	}
}

// content returns what a log holds.
func content(t rapid.TB, l *Log) map[string]string {
	out := map[string]string{}
	if err := l.Values(func(k string, v []byte) error { out[k] = string(v); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// opened opens a log that may be damaged, and nothing else.
func opened(t rapid.TB, path string) *Log {
	l, err := Open(path)
	if _, damaged := errors.AsType[*Damage](err); err != nil && !damaged {
		t.Fatal(err)
	}
	return l
}

func must(t rapid.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// life is what happens to a log until the machine dies: nil is a compaction.
type life struct {
	first  []Op
	writes [][]Op
	last   []Op
}

var lives = rapid.Custom(func(t *rapid.T) (l life) {
	for k, v := range apply(none(), drawOps(t, "first")) {
		l.first = append(l.first, Op{Key: k, Value: []byte(v)})
	}
	for range rapid.IntRange(0, 4).Draw(t, "writes") {
		var ops []Op
		if rapid.Bool().Draw(t, "append") {
			ops = append(drawOps(t, "ops"), Op{Key: "e"})
		}
		l.writes = append(l.writes, ops)
	}
	l.last = drawOps(t, "last")
	return l
})

// TestCrashAnywhere: after random changes and compactions, the machine dies at each byte of the last write.
// What is read then is what was there before that write, with the first of its changes; and the log can be
// written and read on. A few lives are enough, because each waits for the disk; TestCutAnywhere has more.
func TestCrashAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for seed := range 10 {
		life := lives.Example(seed)
		l := &Log{path: path, index: newIndex()}
		must(t, l.Replace(seq(life.first)))
		state := apply(none(), life.first)
		for _, ops := range life.writes {
			if ops == nil {
				must(t, l.Compact())
				if all, live := l.Size(); all != live {
					t.Fatalf("%d bytes after a compaction, of which %d count", all, live)
				}
				continue
			}
			must(t, l.Append(ops))
			state = apply(state, ops)
		}
		before, _ := l.Size()
		must(t, l.Append(life.last))
		whole, err := os.ReadFile(path)
		must(t, err)
		for size := int(before); size <= len(whole); size++ {
			must(t, os.WriteFile(path, whole[:size], 0o600))
			checkPrefix(t, content(t, opened(t, path)), state, life.last)
		}
		if len(whole) > int(before) {
			must(t, os.WriteFile(path, whole[:len(whole)-1], 0o600))
			checkWritable(t, path)
		}
	}
}

// checkWritable checks that a log can be written on.
func checkWritable(t testing.TB, path string) {
	l := opened(t, path)
	want := content(t, l)
	must(t, l.Append([]Op{{Key: "later", Value: []byte("x")}}))
	again, err := Open(path)
	must(t, err)
	want["later"] = "x"
	if got := content(t, again); !maps.Equal(got, want) {
		t.Fatalf("the log holds %v after another write, want %v", got, want)
	}
}

// checkPrefix checks that what was read is a state and the first of the changes that were made last.
func checkPrefix(t rapid.TB, got, state map[string]string, last []Op) {
	found := false
	for n := 0; n <= len(last) && !found; n++ {
		found = maps.Equal(got, apply(state, last[:n]))
	}
	if !found {
		t.Fatalf("the log holds %v: neither %v nor that with the first of %v", got, state, last)
	}
}

func TestOpenNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "log")
	l, err := Open(path)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := l.Append([]Op{{Key: "a"}}); !errors.Is(err, ErrChanged) {
		t.Errorf("appended to no file: %v", err)
	}
	must(t, l.Replace(seq([]Op{{Key: "a", Value: []byte("1")}})))
	if got := content(t, opened(t, path)); got["a"] != "1" {
		t.Errorf("wrote %v", got)
	}
	for _, b := range []string{"", "hello", "strait replica 1 00\n", magic[:5]} {
		must(t, os.WriteFile(path, []byte(b), 0o600))
		if l, err := Open(path); !errors.Is(err, ErrNotLog) || l.Len() != 0 {
			t.Errorf("%q: %v", b, err)
		}
	}
}

// TestChangedByOthers: a file that was removed, replaced or made longer is not appended to, and Replace writes
// it again.
func TestChangedByOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	other := func(b string) func() error {
		return func() error {
			return errors.Join(os.WriteFile(path+".new", []byte(b), 0o600), os.Rename(path+".new", path))
		}
	}
	l := &Log{path: path, index: newIndex()}
	for name, change := range map[string]func() error{
		"removed": func() error { return os.Remove(path) }, "replaced": other("other"), "longer": func() error {
			return os.WriteFile(path, make([]byte, 1000), 0o600)
		},
	} {
		must(t, l.Replace(seq([]Op{{Key: "a", Value: []byte("1")}})))
		must(t, l.Intact())
		must(t, change())
		for what, err := range map[string]error{"intact": l.Intact(), "append": l.Append([]Op{{Key: "b"}}), "compact": l.Compact()} {
			if !errors.Is(err, ErrChanged) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		must(t, l.Replace(seq([]Op{{Key: "a", Value: []byte("2")}})))
		must(t, l.Append([]Op{{Key: "b", Value: []byte("3")}}))
		if got := content(t, opened(t, path)); !maps.Equal(got, map[string]string{"a": "2", "b": "3"}) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestFailedReplace: what cannot be written leaves the old file.
func TestFailedReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := &Log{path: path, index: newIndex()}
	must(t, l.Replace(seq([]Op{{Key: "a", Value: []byte("1")}})))
	failure := errors.New("no")
	if err := l.Replace(func(yield func(Op, error) bool) { yield(Op{}, failure) }); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	if err := l.Append([]Op{{Key: "b"}, {Key: string(make([]byte, maxKey+1))}}); err == nil {
		t.Fatal("appended a key that is too large")
	}
	must(t, l.Append([]Op{{Key: "c"}}))
	if got := content(t, opened(t, path)); !maps.Equal(got, map[string]string{"a": "1", "c": ""}) {
		t.Errorf("the log holds %v", got)
	}
}

// TestCompactFindsDamage: what went bad on the disk is not copied.
func TestCompactFindsDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := &Log{path: path, index: newIndex()}
	must(t, l.Replace(seq([]Op{{Key: "a", Value: []byte("1")}})))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte{0xff}, int64(len(magic))+headSize+2)
	must(t, errors.Join(err, f.Close()))
	if err := l.Compact(); !errors.Is(err, errSum) {
		t.Errorf("compacted: %v", err)
	}
	if err := l.Values(func(string, []byte) error { return nil }); !errors.Is(err, errSum) {
		t.Errorf("read: %v", err)
	}
}

// TestBloated: a log is compacted when more than half of it counts no more, and not for a few bytes.
func TestBloated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := &Log{path: path, index: newIndex()}
	must(t, l.Replace(seq(nil)))
	value := make([]byte, 100<<10)
	appended := 0
	for ; !l.Bloated(); appended++ {
		must(t, l.Append([]Op{{Key: fmt.Sprint(appended % 2), Value: value}}))
	}
	if appended < 14 || appended > 15 { // 4 entries that count or are allowed beside them, and 1 MiB
		t.Errorf("bloated after %d writes", appended)
	}
	must(t, l.Compact())
	if all, live := l.Size(); l.Bloated() || all != live || l.Len() != 2 {
		t.Errorf("%d of %d bytes count", live, all)
	}
}
