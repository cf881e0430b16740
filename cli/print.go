package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"strait.io/strait/daemon/api"
)

// Printer writes text results. It aligns columns, colours glyphs or spells them out, and lets
// nothing through that could control a terminal.
type Printer struct {
	W     io.Writer
	color bool
	ASCII bool
}

func (a *App) Printer() Printer {
	color := a.IsTerminal && !a.NoColor && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"
	return Printer{a.Stdout, color, a.ASCII}
}

// Line prints one line, and colours a leading glyph if colour is on.
func (p Printer) Line(format string, args ...any) {
	fmt.Fprintln(p.W, p.paint(p.spell(fmt.Sprintf(format, args...))))
}

// Table prints a header and rows in columns two spaces apart. The last column is not padded.
func (p Printer) Table(header []string, rows [][]string) {
	cells := [][]string{header}
	for _, row := range rows {
		spelled := make([]string, len(row))
		for i, cell := range row {
			spelled[i] = p.spell(cell)
		}
		cells = append(cells, spelled)
	}
	width := make([]int, len(header))
	for _, row := range cells {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range cells {
		var b strings.Builder
		pending := 0 // padding owed, written only if something follows
		for i, cell := range row {
			if cell != "" {
				b.WriteString(strings.Repeat(" ", pending) + p.paint(cell))
				pending = 0
			}
			pending += width[i] - utf8.RuneCountInString(cell) + 2
		}
		fmt.Fprintln(p.W, b.String())
	}
}

// WithoutEmpty drops the columns that are empty in every row.
func WithoutEmpty(header []string, rows [][]string) ([]string, [][]string) {
	keep := func(row []string) (out []string) {
		for i, cell := range row {
			if len(rows) == 0 || slices.ContainsFunc(rows, func(r []string) bool { return r[i] != api.None }) {
				out = append(out, cell)
			}
		}
		return out
	}
	narrow := make([][]string, len(rows))
	for i, row := range rows {
		narrow[i] = keep(row)
	}
	return keep(header), narrow
}

// verdicts are the glyphs that a cell or line can start with, their spelling in ASCII, and their
// colour (ANSI SGR).
var verdicts = []struct{ glyph, ascii, color string }{
	{api.OK, "ok", "32"}, {api.Warn, "warn", "33"}, {api.Bad, "FAIL", "31"}, {api.Unknown, "?", "36"},
}

var asciiText = strings.NewReplacer("–", "-", "·", "-", "…", "...", "→", "->", "✓", "ok", "✗", "FAIL")

// spell makes text safe to print, and converts it to ASCII if --ascii is set.
func (p Printer) spell(text string) string {
	text = Clean(text)
	if !p.ASCII {
		return text
	}
	for _, v := range verdicts {
		if rest, found := strings.CutPrefix(text, v.glyph+" "); found {
			text = v.ascii + " " + rest
		}
	}
	return strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return '?'
		}
		return r
	}, asciiText.Replace(text))
}

// paint colours the verdict at the start of the text.
func (p Printer) paint(text string) string {
	if !p.color {
		return text
	}
	for _, v := range verdicts {
		for _, mark := range []string{v.glyph, v.ascii} {
			if strings.HasPrefix(text, mark+" ") {
				return "\x1b[" + v.color + "m" + mark + "\x1b[0m" + text[len(mark):]
			}
		}
	}
	return text
}

// Clean replaces control characters. Names and messages come from files and other clusters, and
// must not be able to control the terminal or break a line.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}

// Header prints the first line of every answer: which node's view it is, and how old.
func (a *App) Header(p Printer, v api.Viewpoint, note string) {
	p.Line("clusterset of %s · seen from %s/%s%s · state %s old", api.Count(v.Clusters, "cluster"), v.Cluster, v.Node,
		note, api.Age(a.Now().Sub(v.Time)))
}
