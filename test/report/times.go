package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// took is how many seconds a test took, without its subtests.
type took struct {
	seconds float64
	name    string
}

// clock adds up how long tests took. A subtest's time counts only for the subtest.
type clock struct {
	took     []took
	parallel map[string]bool    // tests that called t.Parallel: not part of their parent's time
	children map[string]float64 // by running test: seconds of its subtests
}

func newClock() clock {
	return clock{parallel: map[string]bool{}, children: map[string]float64{}}
}

// pause records that a test waits for its turn to run in parallel.
func (c *clock) pause(name string) { c.parallel[name] = true }

// end records that a test ended. name is its name with the package, test without. seconds is how
// long it took according to `go test`.
func (c *clock) end(name, test string, seconds float64) {
	own := max(0, seconds-c.children[name])
	c.took = append(c.took, took{own, name})
	if cut := strings.LastIndexByte(test, '/'); cut >= 0 && !c.parallel[name] {
		c.children[name[:len(name)-len(test)+cut]] += seconds
	}
	delete(c.children, name)
	delete(c.parallel, name)
}

// appendTo appends a line "seconds name" per test to a file. Steps of one `make test` that run in
// parallel share the file, so all lines are added in one write.
func (c *clock) appendTo(file string) error {
	var lines []byte
	for _, t := range c.took {
		lines = fmt.Appendf(lines, "%.2f %s\n", t.seconds, t.name)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(lines); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// printSlowest reads lines that appendTo wrote and prints the n slowest tests, slowest first.
func printSlowest(out io.Writer, in io.Reader, n int) error {
	var all []took
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		text, name, _ := strings.Cut(lines.Text(), " ")
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || name == "" {
			return fmt.Errorf("%q is not the time of a test: want seconds and a name", lines.Text())
		}
		all = append(all, took{seconds, name})
	}
	if err := lines.Err(); err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b took) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, t := range all[:min(n, len(all))] {
		fmt.Fprintf(out, "  %7.1f s  %s\n", t.seconds, t.name)
	}
	return nil
}
