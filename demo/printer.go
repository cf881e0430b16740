package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// printer shows the demo's progress: on a terminal with a live status line and colour, otherwise as
// plain lines.
type printer struct {
	w io.Writer
	// live is set for terminals that can rewrite a line. width is in columns; 0 if unknown.
	live, color, ascii bool
	width              int

	mu    sync.Mutex
	doing string
	since time.Time
}

// run redraws the status line until ctx ends. Only a live printer needs it.
func (p *printer) run(ctx context.Context) {
	for sleep(ctx, 250*time.Millisecond) == nil {
		p.mu.Lock()
		p.draw()
		p.mu.Unlock()
	}
}

// draw shows the current activity and how long it has taken so far. The caller holds mu.
func (p *printer) draw() {
	if !p.live || p.doing == "" {
		return
	}
	line := []rune(p.spell(fmt.Sprintf("… (%.0fs) %s", time.Since(p.since).Seconds(), p.doing)))
	if p.width > 0 && len(line) >= p.width {
		line = line[:p.width-1] // a line that wraps cannot be rewritten
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", string(line))
}

// progress sets the current activity.
func (p *printer) progress(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing, p.since = text, time.Now()
	if !p.live {
		fmt.Fprintln(p.w, p.spell("… "+text))
	}
	p.draw()
}

// print writes permanent lines.
func (p *printer) print(lines ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	for _, l := range lines {
		fmt.Fprintln(p.w, p.paint(p.spell(l)))
	}
	p.draw()
}

func (p *printer) note(text string) { p.print("! " + text) }

// quiet removes the status line.
func (p *printer) quiet() {
	p.mu.Lock()
	p.doing = ""
	p.mu.Unlock()
	if p.live {
		p.print()
	}
}

// step prints a step's table and the outcome of its expectations.
func (p *printer) step(st *Step, clusters []string) {
	lines := []string{"", fmt.Sprintf("STEP %d  %s  (%.1fs)", st.Number, st.Title, st.Seconds)}
	header := append([]string{"FROM", "TO", "CALLS"}, clusters...)
	rows := [][]string{append(header, "FAILED", "P50")}
	for _, r := range st.Rows {
		row := []string{r.From, r.Target, fmt.Sprint(r.Calls)}
		for _, c := range clusters {
			row = append(row, dash(r.Hits[c]))
		}
		failed := fmt.Sprint(r.Failures)
		if r.FailedInWindow > 0 {
			failed += fmt.Sprintf(" (+%d in failover)", r.FailedInWindow)
		}
		rows = append(rows, append(row, failed, micros(r.P50)))
	}
	for _, l := range align(rows) {
		lines = append(lines, "  "+l)
	}
	for _, c := range st.Checks {
		lines = append(lines, outcome(c))
	}
	p.print(lines...)
}

// outcome is the line of an expectation. What was seen is left out if it is just what was wanted.
func outcome(c Check) string {
	switch {
	case !c.OK:
		return fmt.Sprintf("✗ %s: %s; expected %s", c.Name, c.Got, c.Want)
	case c.Got == c.Want:
		return "✓ " + c.Name
	}
	return fmt.Sprintf("✓ %s (%s)", c.Name, c.Got)
}

// total prints what was shown and the summary line.
func (p *printer) total(r *Result) {
	mark := "✓"
	if !r.OK {
		mark = "✗"
	}
	met, all := r.expectations()
	facts := append([]string{fmt.Sprintf("%d of %d expectations held", met, all)}, r.shortfalls()...)
	facts = append(facts, r.callsText(), fmt.Sprintf("%d clusters × %d nodes", r.Clusters, r.Nodes),
		"WireGuard "+r.WireGuard, "Linux "+r.Kernel, fmt.Sprintf("%.0fs", r.Seconds))
	lines := append([]string{""}, r.story()...)
	p.print(append(lines, mark+" "+strings.Join(facts, " · "))...)
}

func dash(n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}

func micros(us int64) string {
	switch {
	case us == 0:
		return "–"
	case us < 10_000:
		return fmt.Sprintf("%d µs", us)
	}
	return fmt.Sprintf("%.1f ms", float64(us)/1000)
}

// align pads the cells of each column to the same width.
func align(rows [][]string) []string {
	width := map[int]int{}
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var out []string
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell + strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+2))
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}

var plain = strings.NewReplacer("✓", "ok", "✗", "FAIL", "–", "-", "…", "...", "·", "-", "×", "x", "µ", "u", "→", "->")

func (p *printer) spell(text string) string {
	if p.ascii {
		return plain.Replace(text)
	}
	return text
}

// paint colours the mark at the start of a line. Colour only repeats the text.
func (p *printer) paint(line string) string {
	if !p.color {
		return line
	}
	for _, m := range []struct{ mark, color string }{
		{"✓", "32"}, {"ok", "32"}, {"✗", "31"}, {"FAIL", "31"}, {"!", "33"}, {"STEP", "1"},
	} {
		if rest, found := strings.CutPrefix(line, m.mark+" "); found {
			return "\x1b[" + m.color + "m" + m.mark + "\x1b[0m " + rest
		}
	}
	return line
}
