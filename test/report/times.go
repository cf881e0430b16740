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

// took is how many seconds a test took by itself, without its subtests.
type took struct {
	seconds float64
	name    string
}

// clock adds up how long tests took. A subtest's time counts once: for the subtest.
type clock struct {
	took     []took
	parallel map[string]bool    // tests that called t.Parallel: no part of their parent's time
	children map[string]float64 // seconds of the subtests of a test that still runs
}

func newClock() clock {
	return clock{parallel: map[string]bool{}, children: map[string]float64{}}
}

// pause is told of a test that waits for its turn to run in parallel.
func (c *clock) pause(name string) { c.parallel[name] = true }

// end is told of a test that ended: its name with the package and without, and what `go test` says it took.
func (c *clock) end(name, test string, seconds float64) {
	own := max(0, seconds-c.children[name])
	c.took = append(c.took, took{own, name})
	if cut := strings.LastIndexByte(test, '/'); cut >= 0 && !c.parallel[name] {
		c.children[name[:len(name)-len(test)+cut]] += seconds
	}
	delete(c.children, name)
	delete(c.parallel, name)
}

// appendTo adds a line "seconds name" per test to a file. Steps of one `make test` that run side by side share it: each
// adds its lines by one write.
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

// printSlowest reads lines of appendTo and prints the n slowest tests, the slowest first.
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
