package testutil

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestAtInterrupt interrupts this test in a process of its own.
func TestAtInterrupt(t *testing.T) {
	const inner = "STRAIT_TEST_INTERRUPT"
	if os.Getenv(inner) != "" {
		t.Cleanup(func() { os.Stdout.WriteString("cleanup ") })
		AtInterrupt(func() { os.Stdout.WriteString("first ") })
		AtInterrupt(func() { os.Stdout.WriteString("forgotten ") })()
		cleanup(t, func() error { os.Stdout.WriteString("second "); return errors.New("which fails ") })
		begun, late := make(chan struct{}), make(chan struct{})
		AtInterrupt(func() {
			os.Stdout.WriteString("third ")
			close(begun)
			<-late
		})
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if err := self.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		// Another test of the same binary makes something only now.
		<-begun
		AtInterrupt(func() { os.Stdout.WriteString("late "); close(late) })
		os.Stdout.WriteString("and goes on ")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestAtInterrupt$", "-test.timeout=30s")
	cmd.Env = append(os.Environ(), inner+"=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("%v, want exit code 130: %s%s", err, &out, &errs)
	}
	if want := "third late second first "; out.String() != want {
		t.Errorf("ran %q, want %q", &out, want)
	}
	if !strings.Contains(errs.String(), "interrupt: ") || !strings.Contains(errs.String(), "which fails") {
		t.Errorf("says %q", &errs)
	}
}
