package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon/api"
)

// Exit codes. exitProblem takes precedence over exitUnknown.
const (
	exitOK          = 0
	exitProblem     = 1 // something is wrong or missing, or the command failed
	exitUsage       = 2
	exitUnknown     = 3 // could not find out
	exitWaitOver    = 4 // --wait ran out
	exitInterrupted = 130
)

// exitCodes ends the help of strait itself, and is the only help text that lists the codes.
const exitCodes = `Exit codes:
  0    fine; warnings are allowed
  1    something is wrong or missing, or the command failed
  2    the command line is wrong
  3    could not find out, for example because straitd does not answer
  4    still not done when --wait or --timeout ran out
  130  interrupted
`

// exitError ends the program with a code. Its err is nil if the output already has everything.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// asExit gives the error of a command that ran its exit code, which depends on the reason if the
// error is a failure of the daemon.
func asExit(err error) error {
	var already *exitError
	var failure *api.Failure
	switch {
	case err == nil, errors.As(err, &already):
		return err
	case !errors.As(err, &failure):
		return &exitError{exitProblem, err}
	case failure.Reason == api.NotFound:
		return &exitError{exitProblem, err}
	case failure.Reason == api.BadRequest:
		return &exitError{exitUsage, err}
	}
	return &exitError{exitUnknown, err}
}

// typeErrors wraps cmd and every command below it. An error that has no code after that comes from
// cobra, before the command ran: a wrong flag, argument or command.
func typeErrors(cmd *cobra.Command) {
	if inner := cmd.RunE; inner != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return asExit(inner(cmd, args)) }
	}
	for _, c := range cmd.Commands() {
		typeErrors(c)
	}
}

// report prints what went wrong and returns the exit code.
func (e env) report(ctx context.Context, cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	if ctx.Err() != nil {
		fmt.Fprintln(e.stderr, "strait: interrupted")
		return exitInterrupted
	}
	exit := &exitError{code: exitUsage, err: err}
	errors.As(err, &exit)
	if exit.err == nil {
		return exit.code
	}
	var failure *api.Failure
	if errors.As(err, &failure) {
		fmt.Fprintf(e.stderr, "strait: %s\n", clean(failure.Message))
		if failure.Try != "" {
			fmt.Fprintf(e.stderr, "  try  %s\n", clean(failure.Try))
		}
		return exit.code
	}
	for line := range strings.Lines(exit.err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			fmt.Fprintf(e.stderr, "strait: %s\n", clean(line))
		}
	}
	if exit.code == exitUsage {
		fmt.Fprintf(e.stderr, "  try  %s\n", e.usageHint(cmd))
	}
	return exit.code
}

// usageHint suggests commands with a similar name if there are any, otherwise the help of cmd.
func (e env) usageHint(cmd *cobra.Command) string {
	if !cmd.HasParent() && len(e.args) > 0 {
		if near := cmd.SuggestionsFor(e.args[0]); len(near) > 0 {
			return cmd.Name() + " " + strings.Join(near, " or "+cmd.Name()+" ")
		}
	}
	return cmd.CommandPath() + " --help"
}
