package api

import (
	"fmt"
	"time"

	"strait.io/strait/internal/problem"
)

// Glyphs begin a cell or a line that has a verdict. A colour can repeat what they mean, but never
// replaces it.
const (
	OK      = "✓"
	Warn    = "!"
	Bad     = "✗"
	Unknown = "?"
	// None stands for a value that does not apply.
	None = "–"
)

// Age formats a duration for people: "0.4s", "41s", "6m12s", "3h05m", "4d2h". A negative
// duration, possible only after a clock was set back, reads as "0.0s".
func Age(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// Percent formats a share 0…1. A share above zero never reads as "0 %", nor one below 1 as "100 %".
func Percent(share float64) string {
	switch {
	case share <= 0:
		return None
	case share < 0.01:
		return "<1 %"
	case share > 0.99 && share < 0.9999:
		return "99 %"
	}
	return fmt.Sprintf("%.0f %%", share*100)
}

// Bytes formats a size in binary units.
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 && unit < 4 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTP"[unit])
}

// Short shortens text that is longer than width by cutting its middle, since names differ at their
// ends.
func Short(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width || width < 3 {
		return text
	}
	head := width / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
}

// Count formats a number with its noun: "1 frontend", "2 frontends".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Glyph returns Warn for a warning and Bad for any other Problem.
func Glyph(p problem.Problem) string {
	if p.Warning {
		return Warn
	}
	return Bad
}
