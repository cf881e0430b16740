package demo

import (
	"fmt"
	"strings"
)

// lastStep is the number of the last step.
const lastStep = 9

// Target failover times on an idle machine, of steps 2 and 4.
const (
	podsGoneTarget  = "300 ms"
	nodeDeathTarget = "6 s"
)

// The states of a step.
const (
	stepPassed      = "passed"
	stepFailed      = "failed"
	stepInterrupted = "interrupted"
	stepMissing     = "not run"
)

// step returns the step with a number and its state; nil if it has not run.
func (r *Result) step(number int) (*Step, string) {
	for _, s := range r.Steps {
		switch {
		case s.Number != number:
		case !s.ended:
			return s, stepInterrupted
		case s.failed() > 0:
			return s, stepFailed
		default:
			return s, stepPassed
		}
	}
	return nil, stepMissing
}

// passed returns a step that ran to its end with all its expectations held, otherwise nil.
func (r *Result) passed(number int) *Step {
	if s, state := r.step(number); state == stepPassed {
		return s
	}
	return nil
}

// story sums up in at most three lines what was shown. A sentence is left out unless all its steps
// held.
func (r *Result) story() []string {
	var lines []string
	if r.passed(1) != nil {
		lines = append(lines, fmt.Sprintf("One name and one address (%s) answered in %d clusters, each caller from its own cluster.",
			r.ClusterSetIP, r.Clusters))
	}
	var failovers []string
	if s := r.passed(2); s != nil && s.FailoverMS != nil {
		failovers = append(failovers, fmt.Sprintf("When a cluster's pods left, another cluster answered after %s (target %s).",
			withUnit(*s.FailoverMS), podsGoneTarget))
	}
	if s := r.passed(4); s != nil && s.FailoverMS != nil {
		failovers = append(failovers, fmt.Sprintf("When a machine died, others answered after %s (target %s).",
			withUnit(*s.FailoverMS), nodeDeathTarget))
	}
	if len(failovers) > 0 {
		lines = append(lines, strings.Join(failovers, " "))
	}
	calls := 0
	var when []string
	if s := r.passed(5); s != nil {
		calls += s.Requests
		when = append(when, "while a cluster was cut off")
	}
	inCut, client, backend := r.passed(6), r.passed(7), r.passed(8)
	if inCut != nil && client != nil && backend != nil {
		calls += inCut.Requests + client.Requests + backend.Requests
		when = append(when, fmt.Sprintf("when %d daemons were killed", r.Nodes+2)) // all of a cluster, then two
	}
	if len(when) > 0 {
		lines = append(lines, fmt.Sprintf("None of %d calls failed %s.", calls, strings.Join(when, " and ")))
	}
	return lines
}

// shortfalls names the steps that failed, were interrupted or did not run.
func (r *Result) shortfalls() []string {
	numbers := map[string][]string{}
	for n := 1; n <= lastStep; n++ {
		_, state := r.step(n)
		numbers[state] = append(numbers[state], fmt.Sprint(n))
	}
	var out []string
	for _, state := range []string{stepFailed, stepInterrupted, stepMissing} {
		switch in := numbers[state]; len(in) {
		case 0:
		case 1:
			out = append(out, state+": step "+in[0])
		default:
			out = append(out, state+": steps "+strings.Join(in, ", "))
		}
	}
	return out
}

// callsText counts the calls and those that failed.
func (r *Result) callsText() string {
	text := fmt.Sprintf("%d calls, %d failed", r.Requests, r.Failures)
	during := 0
	for _, s := range r.Steps {
		if s.FailedInWindow != nil {
			during += *s.FailedInWindow
		}
	}
	if during > 0 {
		text += fmt.Sprintf(" (+%d in failover)", during)
	}
	return text
}

// withUnit writes milliseconds, from a second on as seconds.
func withUnit(ms float64) string {
	if ms < 1000 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}
