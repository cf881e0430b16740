package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
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
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-run", "^TestUnderAttack$", "strait.io/strait/test/redteam")
	cmd.Env = append(os.Environ(), measuredEnv+"="+file)
	return r.run(phaseAttack, cmd, file, attackMetrics)
}
