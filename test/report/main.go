// Command report turns the output of `go test -json` into what a person reads: a line per package, the
// whole output of each failed test, each skipped test with its reason, and the totals.
//
// It reads events on standard input. It exits 1 if a test failed, if no package was tested, or if, in CI
// (environment CI=true), a test was skipped that test/skips.txt does not allow. It must not know any test.
package main

import (
	"fmt"
	"os"
)

const allowFile = "test/skips.txt"

func main() {
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
	if !r.finish(allowed, os.Getenv("CI") == "true") {
		os.Exit(1)
	}
}
