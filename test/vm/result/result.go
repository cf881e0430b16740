// Package result turns what test VMs wrote into a verdict and the tables that a person reads.
//
// Pure. Input is one Machine per kernel, with the events of its test programs, and the list of what may be
// skipped. It must not know how a VM is run.
package result

import (
	"bufio"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Machine is the outcome of one VM.
type Machine struct {
	// Kernel is its version, Problem why the VM as such failed: it hung, panicked or never came up.
	Kernel, Problem string
	Notes           []string
	Packages        []Package
	Seconds         float64
	// Processor is what the VM took of the machine's processors, which does not depend on who else uses them.
	Processor float64
}

// Summary is the problem's first line; a console's end may follow it.
func (m Machine) Summary() string {
	first, _, _ := strings.Cut(m.Problem, "\n")
	return strings.TrimRight(first, ":")
}

// Package is the outcome of one test program.
type Package struct {
	Name           string
	Passed, Failed []string
	Skipped        []Skip
	Seconds        float64
	// Problem is a failure of the program outside of any test.
	Problem string
	// Output is what each failed test said, Instructions what the verifier saw per eBPF program.
	Output       map[string]string
	Instructions map[string]int
}

// NoTest is the problem of a program that had nothing to test.
const NoTest = "no test ran"

// Skip is a test that did not run, and why.
type Skip struct{ Test, Reason string }

// event is one line of test2json (see `go doc test2json`).
type event struct{ Action, Test, Output string }

// ReadPackage counts the events of one test program. status is its exit code, done whether it ended.
func ReadPackage(name, events string, done bool, status int) (Package, error) {
	p := Package{Name: name, Output: map[string]string{}, Instructions: map[string]int{}}
	said := map[string][]string{}
	var open []string
	lines := bufio.NewScanner(strings.NewReader(events))
	lines.Buffer(nil, 64<<20) // a test may print a long line
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return p, fmt.Errorf("%s: test2json wrote %q: %w", name, lines.Text(), err)
		}
		switch {
		case e.Action == "run" && e.Test != "":
			open = append(open, e.Test)
		case e.Action == "output":
			said[e.Test] = append(said[e.Test], e.Output)
		case e.Test != "" && p.count(e, said[e.Test]):
			open = slices.DeleteFunc(open, func(test string) bool { return test == e.Test })
		}
	}
	p.ended(said, open, done, status)
	return p, lines.Err()
}

// count takes one test's end, and reports whether the event was one.
func (p *Package) count(e event, said []string) bool {
	switch e.Action {
	case "pass":
		p.Passed = append(p.Passed, e.Test)
	case "fail":
		p.Failed = append(p.Failed, e.Test)
		p.Output[e.Test] = strings.Join(said, "")
	case "skip":
		p.Skipped = append(p.Skipped, Skip{e.Test, reason(said)})
	default:
		return false
	}
	if e.Action != "skip" {
		p.Skipped = append(p.Skipped, inner(e.Test, said)...)
	}
	instructions(said, p.Instructions)
	return true
}

// ended finds what went wrong outside of tests: a program that hung, died or ran no test at all. What the
// tests said that it left open is all there is to look at.
func (p *Package) ended(said map[string][]string, open []string, done bool, status int) {
	switch {
	case !done:
		p.Problem = "did not end"
	case status != 0 && len(p.Failed) == 0:
		p.Problem = fmt.Sprintf("exit status %d", status)
	case len(p.Passed) == 0 && len(p.Failed) == 0:
		p.Problem = NoTest
	default:
		return
	}
	if len(open) > 0 {
		p.Problem += " in " + strings.Join(open, ", ")
	}
	for _, test := range append(open, "") {
		if text := strings.Join(said[test], ""); text != "" {
			p.Output[test] = text
		}
	}
}

var (
	place = regexp.MustCompile(`^\s*\S+\.go:\d+: `)
	// A test that runs itself again in a process of its own logs what that said; its subtests may skip.
	innerSkip    = regexp.MustCompile(`^\s+--- SKIP: (\S+) \(`)
	instructionN = regexp.MustCompile(`instructions: (\S+ \S+) verified (\d+)`)
)

// reason finds what a test said last before it skipped.
func reason(said []string) string {
	for _, line := range slices.Backward(said) {
		if at := place.FindString(line); at != "" {
			return strings.TrimSpace(line[len(at):])
		}
	}
	return "no reason given"
}

// inner finds the skipped subtests in the log of a test that ran itself again.
func inner(test string, said []string) (out []Skip) {
	for _, line := range said {
		if m := innerSkip.FindStringSubmatch(line); m != nil && m[1] != test {
			out = append(out, Skip{m[1], reason(block(m[1], said))})
		}
	}
	return out
}

// block is what a subtest said in such a log: from its start to that of the next.
func block(test string, said []string) []string {
	start := -1
	for i, line := range said {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "===" || fields[1] != "RUN" {
			continue
		}
		if start >= 0 {
			return said[start:i]
		}
		if fields[2] == test {
			start = i
		}
	}
	if start < 0 {
		return nil
	}
	return said[start:]
}

func instructions(said []string, into map[string]int) {
	for _, line := range said {
		if m := instructionN.FindStringSubmatch(line); m != nil {
			var n int
			if _, err := fmt.Sscan(m[2], &n); err == nil {
				into[m[1]] = n
			}
		}
	}
}
