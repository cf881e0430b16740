// Command report turns the output of `go test -json` into text for people: a line per package, the
// whole output of each failed test, each skipped test with its reason, and the totals.
//
// It reads events on standard input. It exits 1 if a test failed, if no package was tested, or if,
// in CI (environment CI=true), a test was skipped that test/skips.txt does not allow. If the
// environment variable TEST_TIMES names a file, it appends to it how long each test took. It must
// not know any test.
//
// With the argument "slowest" it instead reads such a file on standard input and prints the ten
// slowest tests.
package main

import (
	"fmt"
	"os"
	"os/signal"
)

const (
	allowFile = "test/skips.txt"
	slowest   = 10
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "slowest" {
		if err := printSlowest(os.Stdout, os.Stdin, slowest); err != nil {
			fmt.Fprintln(os.Stderr, "report:", err)
			os.Exit(1)
		}
		return
	}
	// Ctrl-C reaches the tests too. This program reports their output and ends after them.
	signal.Ignore(os.Interrupt)
	allowed, err := readAllowed(allowFile)
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	r := newReport(os.Stdout)
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	if file := os.Getenv("TEST_TIMES"); file != "" {
		if err := r.clock.appendTo(file); err != nil {
			fmt.Fprintln(os.Stderr, "report:", err)
			os.Exit(1)
		}
	}
	if !r.finish(allowed, os.Getenv("CI") == "true") {
		os.Exit(1)
	}
}
