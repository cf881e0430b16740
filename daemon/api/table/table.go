// Package table has the columns of every list that people see: of the CLI's tables, and of whatever
// else shows the same rows.
//
// Inputs are answers (package api); outputs are headers and cells as text. A cell with a verdict
// starts with a glyph and a space. Pure: it must not know how rows are aligned or coloured, nor who
// asks.
package table

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"strait.io/strait/daemon/api"
)

// Table is how a list of T is shown.
type Table[T any] struct {
	// Name is what people and commands call an item: "NAMESPACE/NAME", "CLUSTER/NODE". Several
	// items can share one.
	Name    func(item T) string
	Columns []Column[T]
}

// Column is one column of a table.
type Column[T any] struct {
	Name string
	Cell func(item T, now time.Time) string
	// Wide columns are left out unless the wide form is asked for.
	Wide bool
	// Moving columns have ages and counters, which change all the time: a change of nothing else is
	// not worth a row to people who watch. State is what of such a cell is; nil if nothing.
	Moving bool
	State  func(item T) string
}

// Form is which columns are shown.
type Form struct{ Wide bool }

func (f Form) shows(wide bool) bool { return f.Wide || !wide }

// Header names the columns.
func (t Table[T]) Header(f Form) (out []string) {
	for _, c := range t.Columns {
		if f.shows(c.Wide) {
			out = append(out, c.Name)
		}
	}
	return out
}

// Rows has one cell per column; ages are relative to now.
func (t Table[T]) Rows(items []T, now time.Time, f Form) [][]string {
	rows := make([][]string, len(items))
	for i, item := range items {
		for _, c := range t.Columns {
			if f.shows(c.Wide) {
				rows[i] = append(rows[i], c.Cell(item, now))
			}
		}
	}
	return rows
}

// Names returns the names of the items, each once, in their order.
func (t Table[T]) Names(items []T) (out []string) {
	seen := map[string]bool{}
	for _, item := range items {
		if name := t.Name(item); !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

// Still returns what is shown of an item and does not move: two of the same look the same to people
// who watch.
func (t Table[T]) Still(item T, f Form) string {
	var cells []string
	for _, c := range t.Columns {
		switch {
		case !f.shows(c.Wide):
		case !c.Moving:
			cells = append(cells, c.Cell(item, time.Time{}))
		case c.State != nil:
			cells = append(cells, c.State(item))
		}
	}
	return strings.Join(cells, "\x00")
}

// Changes are what is new between two lists, for people who watch.
type Changes[T any] struct {
	// Rows are the items that are new or look different.
	Rows []T
	// Gone are the names of items that are not there any more.
	Gone []string
}

// Compare returns what changed. Items that share a name are compared together.
func (t Table[T]) Compare(before, after []T, f Form) (out Changes[T]) {
	was, is := map[string]string{}, map[string]string{}
	for _, item := range before {
		was[t.Name(item)] += t.Still(item, f) + "\n"
	}
	for _, item := range after {
		is[t.Name(item)] += t.Still(item, f) + "\n"
	}
	for _, item := range after {
		if name := t.Name(item); was[name] != is[name] {
			out.Rows = append(out.Rows, item)
		}
	}
	for _, name := range t.Names(before) {
		if _, still := is[name]; !still {
			out.Gone = append(out.Gone, name)
		}
	}
	return out
}

// text makes a column's cell of what does not depend on the time.
func text[T any](cell func(T) string) func(T, time.Time) string {
	return func(item T, _ time.Time) string { return orNone(cell(item)) }
}

// number makes a column's cell of a count.
func number[T any, N int | uint32 | uint64](count func(T) N) func(T, time.Time) string {
	return func(item T, _ time.Time) string { return fmt.Sprint(count(item)) }
}

func orNone(s string) string {
	if s == "" {
		return api.None
	}
	return s
}

func join[T any](items []T, separator string, text func(T) string) string {
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = text(item)
	}
	return strings.Join(parts, separator)
}

// first formats the first item, and how many more there are.
func first[T any](items []T, text func(T) string) string {
	switch len(items) {
	case 0:
		return api.None
	case 1:
		return text(items[0])
	}
	return fmt.Sprintf("%s +%d", text(items[0]), len(items)-1)
}

// since returns the age of t, or None if t is zero.
func since(now, t time.Time) string {
	if t.IsZero() {
		return api.None
	}
	return api.Age(now.Sub(t))
}

// sorted returns "NAME COUNT" of each count, by name.
func sorted(counts map[string]int) string {
	var parts []string
	for name, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, name))
	}
	slices.SortFunc(parts, func(a, b string) int {
		return strings.Compare(a[strings.IndexByte(a, ' '):], b[strings.IndexByte(b, ' '):])
	})
	return strings.Join(parts, ", ")
}
