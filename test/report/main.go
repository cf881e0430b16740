// Command report runs a `go test -json` command and turns its output into text for people: a line
// per package, the whole output of each test that failed or did not end, each skipped test with its
// reason, and the totals.
//
//	report [-parts] go test -json [ARGUMENT...] -- [PACKAGE...]
//
// If at most three tests failed, and none of them by a data race, a panic, a time limit or a
// counterexample, it runs them again, each alone. What then passes is listed as FLAKY and counts as
// passed. With -parts, it runs only those direct subtests again that failed, because they need
// nothing of each other.
//
// It exits 1 if a test failed, if no package was tested, or if, in CI (environment CI=true), a test
// was skipped that test/skips.txt does not allow. If the environment variable TEST_TIMES names a
// file, it appends to it how long each test took. It must not know any test.
//
// With the argument "slowest" it instead reads such a file on standard input and prints the ten
// slowest tests.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
)

const (
	allowFile = "test/skips.txt"
	slowest   = 10
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "slowest" {
		exitOn(printSlowest(os.Stdout, os.Stdin, slowest))
		return
	}
	parts := len(os.Args) > 1 && os.Args[1] == "-parts"
	args := os.Args[1:]
	if parts {
		args = args[1:]
	}
	cut := slices.Index(args, "--")
	if cut < 1 {
		exitOn(errors.New("usage: report [-parts] go test -json [ARGUMENT...] -- [PACKAGE...]"))
	}
	command, packages := args[:cut], args[cut+1:]
	// Ctrl-C reaches the tests too. This program reports their output and ends after them. It does not
	// ignore the signal, because the tests would then inherit that.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	allowed, err := readAllowed(allowFile)
	exitOn(err)
	r := newReport(os.Stdout)
	r.parts = parts
	exitOn(execute(r, slices.Concat(command, packages)))
	if file := os.Getenv("TEST_TIMES"); file != "" {
		exitOn(r.clock.appendTo(file))
	}
	exitOn(r.repeat(func(again *report, t test) error {
		return execute(again, slices.Concat(command, t.alone()))
	}))
	if !r.finish(allowed, os.Getenv("CI") == "true") {
		os.Exit(1)
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// execute runs a command and reads the events that it prints. That the command fails is part of the
// report.
func execute(r *report, command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	err = r.read(events)
	ended := cmd.Wait()
	if exit := (*exec.ExitError)(nil); ended != nil && !errors.As(ended, &exit) {
		err = errors.Join(err, ended)
	}
	r.end(ended)
	return err
}
