package cli

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon/api"
)

// TestReport: a failure is printed with what was being done and what to try, and those of several
// daemons are all printed.
func TestReport(t *testing.T) {
	failure := &api.Failure{Reason: api.NoAnswer, Message: "no answer", Try: "look"}
	other := &api.Failure{Reason: api.NoAnswer, Message: "no other answer", Try: "look elsewhere"}
	for name, c := range map[string]struct {
		err  error
		code int
		want string
	}{
		"alone":   {failure, 3, "strait: no answer\n  try  look\n"},
		"wrapped": {fmt.Errorf("context c1: ask the daemon on n1: %w", failure), 3, "strait: context c1: ask the daemon on n1: no answer\n  try  look\n"},
		"several": {errors.Join(fmt.Errorf("n1: %w", failure), fmt.Errorf("n2: %w", other)), 3, "strait: n1: no answer; look\nstrait: n2: no other answer; look elsewhere\n"},
		"twice":   {errors.Join(fmt.Errorf("n1: %w", failure), fmt.Errorf("n2: %w", failure)), 3, "strait: n1: no answer; look\nstrait: n2: no answer; look\n"},
		"other":   {errors.New("broken"), 1, "strait: broken\n"},
	} {
		var stderr bytes.Buffer
		a := &App{Stderr: &stderr}
		if code := a.Report(t.Context(), &cobra.Command{Use: "strait"}, asExit(c.err)); code != c.code || stderr.String() != c.want {
			t.Errorf("%s: exit code %d, printed %q, want %q", name, code, stderr.String(), c.want)
		}
	}
}
