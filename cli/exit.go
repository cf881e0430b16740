package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon/api"
)

// Exit codes. ExitProblem takes precedence over ExitUnknown.
const (
	ExitOK          = 0
	ExitProblem     = 1 // something is wrong or missing, or the command failed
	ExitUsage       = 2
	ExitUnknown     = 3 // could not find out
	ExitWaitOver    = 4 // --wait ran out
	ExitInterrupted = 130
)

// ExitCodes ends the help of strait itself, and is the only help text that lists the codes.
const ExitCodes = `Exit codes:
  0    fine; warnings are allowed
  1    something is wrong or missing, or the command failed
  2    the command line is wrong
  3    could not find out, for example because straitd does not answer
  4    still not done when --wait or --timeout ran out
  130  interrupted
`

// ExitError ends the program with a code. Its err is nil if the output already has everything.
type ExitError struct {
	Code int
	err  error
}

func (e *ExitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.err.Error()
}

func (e *ExitError) Unwrap() error { return e.err }

// Exit returns an error that ends the program with a code. Its err is nil if the output already has
// everything.
func Exit(code int, err error) error { return &ExitError{code, err} }

// UsageError returns an error about the command line, with exit code 2.
func UsageError(format string, args ...any) error {
	return &ExitError{ExitUsage, fmt.Errorf(format, args...)}
}

// asExit gives the error of a command that ran its exit code, which depends on the reason if the
// error is a failure of the daemon.
func asExit(err error) error {
	var already *ExitError
	var failure *api.Failure
	switch {
	case err == nil, errors.As(err, &already):
		return err
	case !errors.As(err, &failure):
		return &ExitError{ExitProblem, err}
	case failure.Reason == api.NotFound:
		return &ExitError{ExitProblem, err}
	case failure.Reason == api.BadRequest:
		return &ExitError{ExitUsage, err}
	}
	return &ExitError{ExitUnknown, err}
}

// TypeErrors wraps cmd and every command below it. An error that has no code after that comes from
// cobra, before the command ran: a wrong flag, argument or command.
func TypeErrors(cmd *cobra.Command) {
	if inner := cmd.RunE; inner != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return asExit(inner(cmd, args)) }
	}
	for _, c := range cmd.Commands() {
		TypeErrors(c)
	}
}

// Report prints what went wrong and returns the exit code.
func (a *App) Report(ctx context.Context, cmd *cobra.Command, err error) int {
	if err == nil {
		return ExitOK
	}
	if ctx.Err() != nil {
		fmt.Fprintln(a.Stderr, "strait: interrupted")
		return ExitInterrupted
	}
	exit := &ExitError{Code: ExitUsage, err: err}
	errors.As(err, &exit)
	if exit.err == nil {
		return exit.Code
	}
	if text, try, found := failureText(exit.err); found {
		fmt.Fprintf(a.Stderr, "strait: %s\n", Clean(text))
		if try != "" {
			fmt.Fprintf(a.Stderr, "  try  %s\n", Clean(try))
		}
		return exit.Code
	}
	for line := range strings.Lines(exit.err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			fmt.Fprintf(a.Stderr, "strait: %s\n", Clean(line))
		}
	}
	if exit.Code == ExitUsage {
		fmt.Fprintf(a.Stderr, "  try  %s\n", a.usageHint(cmd))
	}
	return exit.Code
}

// failureText splits an error that ends with one failure of a daemon into what went wrong and what
// to try. It finds none in the errors of several daemons.
func failureText(err error) (text, try string, found bool) {
	var failure *api.Failure
	if !errors.As(err, &failure) {
		return "", "", false
	}
	before, found := strings.CutSuffix(err.Error(), failure.Error())
	if !found || strings.Contains(before, "\n") {
		return "", "", false
	}
	return before + failure.Message, failure.Try, true
}

// usageHint suggests commands with a similar name if there are any, otherwise the help of cmd.
func (a *App) usageHint(cmd *cobra.Command) string {
	if !cmd.HasParent() && len(a.Args) > 0 {
		if near := cmd.SuggestionsFor(a.Args[0]); len(near) > 0 {
			return cmd.Name() + " " + strings.Join(near, " or "+cmd.Name()+" ")
		}
	}
	return cmd.CommandPath() + " --help"
}
