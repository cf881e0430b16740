package cli

import (
	"testing"
	"time"
)

func TestWhen(t *testing.T) {
	zone := time.FixedZone("there", 2*3600)
	now := time.Date(2026, 5, 1, 14, 10, 0, 0, zone)
	for text, want := range map[string]string{
		"14:02": "2026-05-01T14:02:00+02:00", "14:02:05": "2026-05-01T14:02:05+02:00", "14:02:05.5": "2026-05-01T14:02:05.5+02:00",
		"23:59": "2026-04-30T23:59:00+02:00", "10m": "2026-05-01T14:00:00+02:00", "1h30m ago": "2026-05-01T12:40:00+02:00",
		"2026-05-01 09:00": "2026-05-01T09:00:00+02:00", "2026-05-01T09:00:01": "2026-05-01T09:00:01+02:00",
		"2026-05-01T09:00:00Z": "2026-05-01T09:00:00Z", "2026-04-29": "2026-04-29T00:00:00+02:00",
	} {
		if got, err := When(text, now); err != nil || got.Format(time.RFC3339Nano) != want {
			t.Errorf("%q: %s, %v, want %s", text, got.Format(time.RFC3339Nano), err, want)
		}
	}
	for _, text := range []string{"", "soon", "25:00", "-10m", "14", "ago"} {
		if got, err := When(text, now); err == nil {
			t.Errorf("%q: %s", text, got)
		}
	}
}
