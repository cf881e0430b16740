package lend

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// pod is a lender with the files that its kubelet mounts.
type pod struct {
	*testing.T
	Lender
	stop func()
}

func start(t *testing.T, dir, name string) *pod {
	t.Helper()
	files := t.TempDir()
	p := &pod{T: t, Lender: Lender{Dir: dir, Name: name, Token: filepath.Join(files, "token"), Root: filepath.Join(files, "root.key"), Log: testutil.Logger(t)}}
	p.mounts("token of "+name, "root")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Lender.Run(ctx) }()
	p.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		done <- nil
	}
	t.Cleanup(p.stop)
	return p
}

func (p *pod) mounts(token, root string) {
	p.Helper()
	for path, text := range map[string]string{p.Token: token, p.Root: root} {
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			p.Fatal(err)
		}
	}
}

// lent waits until this is lent.
func lent(t *testing.T, dir string, want Loan) {
	t.Helper()
	testutil.Eventually(t, 10*time.Second, func() error {
		got, err := Look(dir, time.Now())
		if err == nil && got != want {
			err = fmt.Errorf("lent is %q %q by %s, want %q %q by %s", got.Token, got.Root, got.From, want.Token, want.Root, want.From)
		}
		return err
	})
}

// TestLend: two lenders on one node; each takes away its own files alone, and follows what the kubelet
// mounts.
func TestLend(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "leader")
	if err := os.Mkdir(dir, 0o755); err != nil { // as the kubelet makes it
		t.Fatal(err)
	}
	one := start(t, dir, "one")
	lent(t, dir, Loan{"one", "token of one", "root"})
	two := start(t, dir, "two")
	testutil.Eventually(t, 10*time.Second, func() error {
		_, err := os.Stat(filepath.Join(dir, "two", aliveFile))
		return err
	})
	lent(t, dir, Loan{"one", "token of one", "root"})
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %04o", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	one.mounts("renewed", "next root")
	lent(t, dir, Loan{"one", "renewed", "next root"})
	one.stop()
	lent(t, dir, Loan{"two", "token of two", "root"})
	// A daemon whose clock was ahead took it for gone.
	testutil.Eventually(t, 10*time.Second, func() error { // the lender may write meanwhile
		return os.RemoveAll(filepath.Join(dir, "two"))
	})
	lent(t, dir, Loan{"two", "token of two", "root"})
	two.stop()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestKilled: what a lender left that was killed counts no more, and is removed.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	l := Lender{Dir: dir, Name: "killed", Token: filepath.Join(t.TempDir(), "token")}
	if err := os.WriteFile(l.Token, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.lend(filepath.Join(dir, "killed")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	lent(t, dir, Loan{"killed", "old", ""})
	if l, err := Look(dir, began.Add(Stale+time.Second)); err != nil || l != (Loan{}) {
		t.Errorf("%v, %v", l, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if l, err := Look(filepath.Join(dir, "none"), began); err != nil || l != (Loan{}) {
		t.Errorf("without a directory: %v, %v", l, err)
	}
}

// TestCheck: a probe tells a lender that lends from one that does not yet, one that hangs and one
// that has stopped.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	probe := func(name, want string, later time.Duration) {
		t.Helper()
		err := Lender{Dir: dir, Name: name}.Check(time.Now().Add(later))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	probe("one", "nothing is lent", 0)
	one := start(t, dir, "one")
	lent(t, dir, Loan{"one", "token of one", "root"})
	probe("one", "", 0)
	probe("two", "nothing is lent", 0)
	probe("one", "no sign of life for 1m", time.Minute)
	one.stop()
	probe("one", "nothing is lent", 0)
}

// TestReadable: nothing counts that others could have read.
func TestReadable(t *testing.T) {
	for _, file := range []string{tokenFile, rootFile} {
		dir := t.TempDir()
		own := filepath.Join(dir, "open")
		for name, text := range map[string]string{tokenFile: "t", rootFile: "r", aliveFile: ""} {
			if err := put(filepath.Join(own, name), []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Join(own, file), 0o644); err != nil {
			t.Fatal(err)
		}
		if l, err := Look(dir, time.Now()); err == nil || l != (Loan{}) {
			t.Errorf("%s: %v, %v", file, l, err)
		}
	}
}

func TestChoose(t *testing.T) {
	now := time.Unix(1000, 0)
	ago := func(s int) time.Time { return now.Add(-time.Duration(s) * time.Second) }
	for _, c := range []struct {
		what string
		all  []sign
		want string
	}{
		{"none", nil, "[] []"},
		{"equal ones by name", []sign{{"b", true, ago(0)}, {"a", true, ago(3)}}, "[a b] []"},
		{"one that stopped last", []sign{{"a", true, ago(9)}, {"b", true, ago(1)}}, "[b a] []"},
		{"one that is gone", []sign{{"a", true, ago(31)}, {"b", true, ago(29)}}, "[b] [a]"},
		{"one that is being made", []sign{{"a", false, ago(1)}, {"b", true, ago(9)}}, "[b] []"},
		{"one that was never finished", []sign{{"a", false, ago(31)}}, "[] [a]"},
		{"a clock that was set back", []sign{{"a", true, ago(-31)}}, "[] [a]"},
	} {
		live, gone := choose(c.all, now)
		if got := fmt.Sprint(live, gone); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// TestCannotLend: a lender that cannot begin returns why, and leaves nothing.
func TestCannotLend(t *testing.T) {
	dir := t.TempDir()
	l := Lender{Dir: dir, Name: "n", Token: filepath.Join(dir, "missing"), Log: testutil.Logger(t)}
	if err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("without a token: %v", err)
	}
	for _, name := range []string{"", "..", "a/b"} {
		l.Name = name
		if err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "name of a lender") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestLoanIsSecret: a loan that is printed shows no secret.
func TestLoanIsSecret(t *testing.T) {
	l := Loan{"pod", "secret", "secret"}
	for _, text := range []string{fmt.Sprint(l), fmt.Sprintf("%+v %#v", l, l), l.LogValue().String()} {
		if strings.Contains(text, "secret") || !strings.Contains(text, "pod") {
			t.Errorf("it returned %s", text)
		}
	}
}
