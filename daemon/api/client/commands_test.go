package client

import (
	"context"
	"errors"
	"strings"
	"testing"

	"strait.io/strait/daemon/api"
)

// TestCommandFailures: what a command prints and its exit code become the failure that a socket
// gives.
func TestCommandFailures(t *testing.T) {
	for name, c := range map[string]struct {
		out     Output
		err     error
		reason  api.FailureReason
		message string
	}{
		"not found":   {out: Output{Code: 1, Stderr: []byte("strait: no cluster exports a service a/b\n  try  list all services\n")}, reason: api.NotFound, message: "no cluster exports a service a/b; list all services"},
		"bad request": {out: Output{Code: 2, Stderr: []byte("strait: no change\nstrait: write another\n")}, reason: api.BadRequest, message: "no change; write another"},
		"no socket":   {out: Output{Code: 3, Stderr: []byte("strait: there is no socket x\n")}, reason: api.NoAnswer, message: "there is no socket x"},
		"no message":  {out: Output{Code: 137}, reason: api.NoAnswer, message: "strait ended with exit code 137, and without a message"},
		"no program":  {err: errors.New("no such pod"), reason: api.NoAnswer, message: "straitd at node n1 did not answer: no such pod"},
		"other words": {out: Output{Stdout: []byte("hello")}, reason: api.NotStrait, message: "node n1"},
		"no words":    {reason: api.NotStrait, message: "node n1"},
	} {
		run := func(context.Context, ...string) (Output, error) { return c.out, c.err }
		_, err := OnCommands(run, "node n1").Explain(t.Context(), "a/b", "")
		var f *api.Failure
		if !errors.As(err, &f) || f.Reason != c.reason || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %+v", name, err)
		}
	}
}

// TestCommandsOfPathsWithoutOne: a path that no command answers is a failure, and no command runs.
func TestCommandsOfPathsWithoutOne(t *testing.T) {
	run := func(context.Context, ...string) (Output, error) {
		t.Error("a command ran")
		return Output{}, nil
	}
	for _, path := range []string{"/v2/status", "%", ""} {
		_, err := commands{run, "n1"}.Get(t.Context(), path)
		var f *api.Failure
		if !errors.As(err, &f) || f.Reason != api.NoAnswer {
			t.Errorf("%q: %v", path, err)
		}
	}
}
