package result

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Rules say which outcomes are acceptable.
type Rules struct {
	Allowed []Allowed
	// Partial is set if only chosen tests ran. Programs without a test, and allowed skips that did
	// not happen, are then acceptable.
	Partial bool
}

// Write prints failures, skips, instruction counts and the table, then the totals. It reports
// whether the run succeeded.
func Write(w io.Writer, machines []Machine, rules Rules) bool {
	if rules.Partial {
		machines = withoutIdle(machines)
	}
	ok := writeFailures(w, machines)
	ok = writeSkips(w, machines, rules.Allowed) && ok
	if !rules.Partial {
		ok = writeUnused(w, machines, rules.Allowed) && ok
	}
	writeNotes(w, machines)
	if text := Instructions(machines); text != "" {
		fmt.Fprintf(w, "\n%s", text)
	}
	passed, failed, skipped := writeTable(w, machines)
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return ok && failed == 0 && passed > 0
}

func writeFailures(w io.Writer, machines []Machine) bool {
	ok := true
	for _, m := range machines {
		if m.Problem != "" {
			fmt.Fprintf(w, "FAIL %s: %s\n", m.Kernel, m.Problem)
			ok = false
		}
		for _, p := range m.Packages {
			if p.Problem != "" {
				fmt.Fprintf(w, "FAIL %s %s: %s\n", m.Kernel, p.Name, p.Problem)
				ok = false
			}
			for _, test := range slices.Sorted(maps.Keys(p.Output)) {
				fmt.Fprintf(w, "--- FAIL %s %s/%s\n%s", m.Kernel, p.Name, test, p.Output[test])
			}
		}
	}
	return ok
}

func writeSkips(w io.Writer, machines []Machine, allowed []Allowed) bool {
	ok := true
	for _, m := range machines {
		for _, p := range m.Packages {
			for _, s := range p.Skipped {
				name := p.Name + "/" + s.Test
				fmt.Fprintf(w, "SKIP %s %s: %s\n", m.Kernel, name, s.Reason)
				if !allows(allowed, m.Kernel, name) {
					fmt.Fprintf(w, "FAIL %s %s: in a VM a test is skipped only if test/vm/skips.txt allows it\n", m.Kernel, name)
					ok = false
				}
			}
		}
	}
	return ok
}

func writeUnused(w io.Writer, machines []Machine, allowed []Allowed) bool {
	unused := Unused(allowed, machines)
	for _, a := range unused {
		fmt.Fprintf(w, "FAIL test/vm/skips.txt: %s %s is not skipped: remove the line\n", strings.Join(a.Kernels, ","), a.Test)
	}
	return len(unused) == 0
}

// withoutIdle removes the programs in which no test ran.
func withoutIdle(machines []Machine) []Machine {
	machines = slices.Clone(machines)
	for i, m := range machines {
		machines[i].Packages = slices.DeleteFunc(slices.Clone(m.Packages), func(p Package) bool { return p.Problem == NoTest })
	}
	return machines
}

func writeNotes(w io.Writer, machines []Machine) {
	for _, m := range machines {
		for _, n := range m.Notes {
			fmt.Fprintf(w, "NOTE %s: %s\n", m.Kernel, n)
		}
	}
}

// Instructions returns a table of the instructions that the verifier processed: a line per program,
// a column per kernel. It returns "" if nothing was counted. The table is committed, so that a
// review shows growth.
func Instructions(machines []Machine) string {
	rows := map[string]map[string]int{}
	for _, m := range machines {
		for _, p := range m.Packages {
			for program, n := range p.Instructions {
				if rows[program] == nil {
					rows[program] = map[string]int{}
				}
				rows[program][m.Kernel] = n
			}
		}
	}
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "INSTRUCTIONS VERIFIED\t")
	for _, m := range machines {
		fmt.Fprintf(t, "%s\t", m.Kernel)
	}
	fmt.Fprintln(t)
	for _, program := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(t, "%s\t", program)
		for _, m := range machines {
			if n, ok := rows[program][m.Kernel]; ok {
				fmt.Fprintf(t, "%d\t", n)
			} else {
				fmt.Fprint(t, "-\t")
			}
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // writes to memory, which cannot fail
	return b.String()
}

func writeTable(w io.Writer, machines []Machine) (passed, failed, skipped int) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nKERNEL\tPACKAGE\tPASSED\tFAILED\tSKIPPED\tSECONDS")
	for _, m := range machines {
		for _, p := range m.Packages {
			f := len(p.Failed)
			if p.Problem != "" {
				f++
			}
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%.0f\n", m.Kernel, p.Name, len(p.Passed), f, len(p.Skipped), p.Seconds)
			passed, failed, skipped = passed+len(p.Passed), failed+f, skipped+len(p.Skipped)
		}
		verdict := "ok"
		if m.Problem != "" {
			failed++
			verdict = "FAILED: " + m.Summary()
		}
		fmt.Fprintf(t, "%s\t(the whole VM: %s)\t\t\t\t%.0f, processor %.0f\n", m.Kernel, verdict, m.Seconds, m.Processor)
	}
	_ = t.Flush()
	return passed, failed, skipped
}
