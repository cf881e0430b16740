package table

import "time"

// Row is a value that prints as one row of a table. A cell with a verdict starts with a glyph and a
// space.
type Row interface {
	// TableHeader names the columns.
	TableHeader() []string
	// TableRow has one cell per column; ages are relative to now.
	TableRow(now time.Time) []string
}

// Of turns values into a header and rows.
func Of[T Row](items []T, now time.Time) (header []string, rows [][]string) {
	var zero T
	for _, item := range items {
		rows = append(rows, item.TableRow(now))
	}
	return zero.TableHeader(), rows
}
