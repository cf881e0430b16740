// Package result turns the output of test VMs into a verdict and tables for people.
//
// Pure. Input is one Machine per kernel, with the events of its test programs, and the list of
// allowed skips. It must not know how a VM is run.
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
	// Kernel is the kernel's version. Problem is why the VM as a whole failed: it hung, panicked or
	// never came up. It is empty if it did not fail.
	Kernel, Problem string
	Notes           []string
	Packages        []Package
	Seconds         float64
	// Processor is the processor time that the VM took, in seconds. Unlike Seconds it does not
	// depend on the load of the machine.
	Processor float64
}

// Summary returns the problem's first line. The end of the console's output can follow it in
// Problem.
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
	// Problem is a failure of the program outside any test.
	Problem string
	// Output is the output of each failed test. Instructions is the number of instructions that the
	// verifier processed, by eBPF program.
	Output       map[string]string
	Instructions map[string]int
}

// NoTest is the Problem of a program in which no test ran.
const NoTest = "no test ran"

// Skip is a test that did not run, and why.
type Skip struct{ Test, Reason string }

// event is one line of test2json (see `go doc test2json`).
type event struct{ Action, Test, Output string }

// ReadPackage evaluates the events of one test program. done says whether it ended, status is its
// exit code.
func ReadPackage(name, events string, done bool, status int) (Package, error) {
	p := Package{Name: name, Output: map[string]string{}, Instructions: map[string]int{}}
	said := map[string][]string{}
	var open []string
	lines := bufio.NewScanner(strings.NewReader(events))
	lines.Buffer(nil, 64<<20) // a test can print a long line
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

// count records the end of a test, and reports whether the event was one.
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

// ended records what went wrong outside tests: a program hung, died or ran no test at all. It keeps
// the output of the tests that did not finish, which is the only evidence.
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
	// A test that runs itself again in a separate process logs that process's output. Subtests can
	// skip there.
	innerSkip    = regexp.MustCompile(`^\s+--- SKIP: (\S+) \(`)
	instructionN = regexp.MustCompile(`instructions: (\S+ \S+) verified (\d+)`)
)

// reason returns the last message that a test logged before it skipped.
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

// block returns a subtest's output in such a log: from its start to the start of the next.
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
