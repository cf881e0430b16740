package node

import (
	"log/slog"
	"testing"

	"strait.io/strait/daemon/api"
)

func TestBelow(t *testing.T) {
	for level, want := range map[string]bool{"DEBUG": true, "DEBUG+1": true, "INFO": true, "INFO+1": true, "WARN": false, "ERROR": false, "NOTICE": false} {
		if got := below(api.LogLine{Level: level}, slog.LevelWarn); got != want {
			t.Errorf("%s is below WARN: %t, want %t", level, got, want)
		}
	}
}
