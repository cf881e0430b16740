package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// attackMetrics are the metrics of the phase attack, as TestUnderAttack writes them.
var attackMetrics = []string{
	"attack_p50_ratio", "attack_p90_ratio", "attack_p99_ratio", "attack_failed_calls", "attack_rss_mb", "attack_log_lines_per_minute",
}

// measuredEnv tells TestUnderAttack where to write what it measures.
const measuredEnv = "STRAIT_REDTEAM_MEASURED"

// measureAttack runs TestUnderAttack: real daemons, with and without all its attackers.
func measureAttack(ctx context.Context, dir string, r *result) error {
	file := filepath.Join(dir, "attack.json")
	start := time.Now()
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-run", "^TestUnderAttack$", "strait.io/strait/test/redteam")
	cmd.Env = append(os.Environ(), measuredEnv+"="+file)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it cleans up
	cmd.WaitDelay = time.Minute
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("TestUnderAttack: %w:\n%s", err, out)
	}
	fmt.Fprintf(os.Stderr, "bench: %-12s %5.1f s\n", phaseAttack, time.Since(start).Seconds())
	r.Took += time.Since(start)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return r.addRounds(text, attackMetrics)
}
