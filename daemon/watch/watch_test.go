package watch_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/watch"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// TestFile: a change is seen once, and so is that the file cannot be read.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	s := watch.File(path, notify.New())
	if _, err := s.Now(); !errors.Is(err, fs.ErrNotExist) || s.Look() {
		t.Errorf("a file that is not there: %v", err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"", "a", "b"} {
		if write(text); !s.Look() || s.Look() {
			t.Errorf("%q: a change is seen once", text)
		}
		if got, err := s.Now(); got != text || err != nil {
			t.Errorf("%q, %v; want %q", got, err, text)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if !s.Look() || s.Look() {
		t.Error("that it is gone is seen once")
	}
	if none := watch.File("", nil); none.Look() || none.Run(context.Background()) != nil {
		t.Error("without a path, there is nothing to follow")
	}
}

// TestRun: the loop wakes after a change that it must know, and not after others.
func TestRun(t *testing.T) {
	changed, results := notify.New(), make(chan string, 3)
	s := watch.New(watch.Config[string]{
		Read: func() (string, error) {
			select {
			case r := <-results:
				return r, nil
			default:
				return "", errors.New("nothing")
			}
		},
		Every: time.Millisecond, Same: func(a, b string) bool { return true }, Changed: changed,
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	if testutil.Signalled(changed, 20*time.Millisecond) {
		t.Error("it wakes although nothing changed")
	}
	if results <- "x"; !testutil.Signalled(changed, 10*time.Second) {
		t.Error("it does not wake after a change")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestValue: the last good value stays in force, whatever happens to the file.
func TestValue(t *testing.T) {
	refused, gone := errors.New("is refused"), fmt.Errorf("open f: %w", fs.ErrNotExist)
	type step struct {
		text    string
		err     error // of the file
		use     error // of Use
		want    int
		message string // the Problem's message
		times   int    // how often Use was called
	}
	for name, c := range map[string]struct {
		absent watch.Absence
		steps  []step
	}{
		"good":            {watch.Wrong, []step{{"1", nil, nil, 1, "", 1}, {"1", nil, nil, 1, "", 1}, {"2", nil, nil, 2, "", 2}}},
		"empty":           {watch.Wrong, []step{{"", nil, nil, 0, "", 0}, {"1", nil, nil, 1, "", 1}, {"", nil, nil, 1, "stays: strconv", 1}}},
		"garbage":         {watch.Wrong, []step{{"1", nil, nil, 1, "", 1}, {"x", nil, nil, 1, "stays: strconv", 1}, {"1", nil, nil, 1, "", 1}}},
		"unreadable":      {watch.Empty, []step{{"1", nil, nil, 1, "", 1}, {"", refused, nil, 1, "stays: is refused", 1}, {"2", nil, nil, 2, "", 2}}},
		"two causes":      {watch.Wrong, []step{{"", errors.Join(refused, refused), nil, 0, "stays: is refused, is refused", 0}}},
		"cannot be used":  {watch.Wrong, []step{{"1", nil, nil, 1, "", 1}, {"2", nil, refused, 1, "stays: is refused", 2}, {"2", nil, nil, 2, "", 3}}},
		"gone":            {watch.Wrong, []step{{"1", nil, nil, 1, "", 1}, {"", gone, nil, 1, "stays: open f", 1}}},
		"gone, and kept":  {watch.Kept, []step{{"1", nil, nil, 1, "", 1}, {"", gone, nil, 1, "", 1}, {"1", nil, nil, 1, "", 1}}},
		"gone, and empty": {watch.Empty, []step{{"1", nil, nil, 1, "", 1}, {"", gone, nil, 0, "", 2}, {"", gone, nil, 0, "", 2}, {"1", nil, nil, 1, "", 3}}},
		"never there":     {watch.Empty, []step{{"", gone, nil, 0, "", 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			var now step
			used := 0
			source := watch.New(watch.Config[string]{
				Read: func() (string, error) { return now.text, now.err },
				Same: func(a, b string) bool { return a == b },
			})
			v := watch.Follow(source, watch.Rule[int]{
				Parse:   strconv.Atoi,
				Use:     func(string, int) error { used++; return now.use },
				Absent:  c.absent,
				Problem: problem.Problem{Code: problem.SeedsFile, Message: "the last value stays"},
			})
			for i, s := range c.steps {
				now = s
				source.Look()
				got, ps := v.Next()
				if got != s.want || got != v.Get() || used != s.times {
					t.Errorf("step %d: %d, used %d times; want %d and %d", i, got, used, s.want, s.times)
				}
				if (s.message == "") != (len(ps) == 0) || s.message != "" && !strings.Contains(ps[0].Message, s.message) {
					t.Errorf("step %d: problems %v, want %q", i, ps, s.message)
				}
			}
		})
	}
}

// TestSet: a value of an earlier life stays in force until the file has another one.
func TestSet(t *testing.T) {
	text := "7"
	source := watch.New(watch.Config[string]{Read: func() (string, error) { return text, nil }, Same: func(a, b string) bool { return a == b }})
	v := watch.Follow(source, watch.Rule[int]{Parse: strconv.Atoi, Use: func(string, int) error {
		t.Error("it is in force already")
		return nil
	}})
	v.Set("7", 8)
	if got, ps := v.Next(); got != 8 || len(ps) > 0 || v.Text() != "7" || v.Source() != source {
		t.Errorf("%d, %v, %q", got, ps, v.Text())
	}
}
