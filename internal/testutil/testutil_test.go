package testutil

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// recorder stands in for a test, to see how testutil ends one.
type recorder struct {
	testing.TB
	failed, skipped, logged string
	cleanups                []func()
}

func (r *recorder) Helper()                   {}
func (r *recorder) Cleanup(f func())          { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Fatalf(f string, a ...any) { r.failed = f }
func (r *recorder) Skip(a ...any)             { r.skipped, _ = a[0].(string) }
func (r *recorder) Log(a ...any)              { s, _ := a[0].(string); r.logged += s + "\n" }

func TestMissing(t *testing.T) {
	for _, tc := range []struct {
		name, ci     string
		fails, skips bool
	}{
		{name: "a developer's machine skips", ci: "", skips: true},
		{name: "CI fails", ci: "true", fails: true},
		{name: "CI=false is no CI", ci: "false", skips: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("CI", tc.ci)
			r := &recorder{}
			Missing(r, "needs a unicorn")
			if (r.failed != "") != tc.fails || (r.skipped == "needs a unicorn") != tc.skips {
				t.Errorf("failed %q, skipped %q", r.failed, r.skipped)
			}
		})
	}
}

func TestEventually(t *testing.T) {
	calls := 0
	Eventually(t, time.Second, func() error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if calls != 3 {
		t.Errorf("%d calls, want 3", calls)
	}
	r := &recorder{}
	Eventually(r, 0, func() error { return errors.New("never") })
	if r.failed == "" {
		t.Error("an error that stays must fail the test")
	}
}

func TestLoggerAfterTheEnd(t *testing.T) {
	r := &recorder{}
	log := Logger(r)
	log.Info("during")
	for _, f := range r.cleanups {
		f()
	}
	log.Info("after")
	if !strings.Contains(r.logged, "during") || strings.Contains(r.logged, "after") {
		t.Errorf("logged %q", r.logged)
	}
}

func TestMain(m *testing.M) {
	// TestCgroup runs this binary as a process that only waits.
	if os.Getenv("STRAIT_TEST_WAIT") != "" {
		time.Sleep(time.Minute)
		return
	}
	os.Exit(m.Run())
}

func waiter(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "STRAIT_TEST_WAIT=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be dead already
		_ = cmd.Wait()
	})
	return cmd
}

func TestPause(t *testing.T) {
	for _, tc := range []struct {
		name                string
		waited, check, want time.Duration
	}{
		{"at first", 0, 0, pollEvery},
		{"a tenth of the wait", time.Second, time.Millisecond, 100 * time.Millisecond},
		{"no more than the longest", time.Minute, time.Millisecond, settledPause},
		{"a check that takes long", time.Second, 300 * time.Millisecond, 600 * time.Millisecond},
		{"a check that takes very long", time.Minute, 10 * time.Second, maxPause},
	} {
		if got := pause(tc.waited, tc.check); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
