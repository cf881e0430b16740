package cli

import (
	"strings"
	"time"
)

// Times says how to write a moment.
const Times = `14:02, 14:02:05, "2026-05-01 14:02", 2026-05-01T14:02:00Z, or how long ago: 10m`

// When reads a moment: a clock's time, which is the last one before now, a date with it, RFC 3339, or how
// long ago. Without a zone, it is in that of now.
func When(text string, now time.Time) (time.Time, error) {
	word := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "ago"))
	if d, err := time.ParseDuration(word); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		t, err := time.ParseInLocation(layout, word, now.Location())
		if err != nil {
			continue
		}
		y, m, d := now.Date()
		out := time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), now.Location())
		if out.After(now) {
			out = time.Date(y, m, d-1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), now.Location())
		}
		return out, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, word, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, UsageError("%q is no time: write %s", text, Times)
}
