package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"strait.io/strait/test/bench/failover"
	"strait.io/strait/test/bench/stats"
)

// demoMetrics are the metrics of the phase demo.
var demoMetrics = []string{failover.FailoverMS, failover.DrainMS}

// measureDemo builds strait, and measures the clusterset of `strait demo`: real daemons in three
// clusters of two nodes.
func measureDemo(ctx context.Context, o options, dir string, r *result) error {
	bin := filepath.Join(dir, "bin")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", bin+"/", "strait.io/strait/cmd/strait", "strait.io/strait/cmd/straitd")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build strait: %w:\n%s", err, out)
	}
	start := time.Now()
	rounds, err := failover.Measure(ctx, filepath.Join(bin, "strait"), filepath.Join(dir, "demo"), o.sizes().clustersets)
	if err != nil {
		return err
	}
	r.ended(phaseDemo, start)
	return r.addRounds(rounds, demoMetrics)
}

// run runs a program that measures a phase and writes its metrics to a file.
func (r *result) run(phase string, cmd *exec.Cmd, file string, metrics []string) error {
	start := time.Now()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it cleans up
	cmd.WaitDelay = time.Minute
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w:\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	r.ended(phase, start)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var rounds map[string][]float64
	if err := json.Unmarshal(text, &rounds); err != nil {
		return fmt.Errorf("read its result: %w", err)
	}
	return r.addRounds(rounds, metrics)
}

// ended notes how long a phase took.
func (r *result) ended(phase string, start time.Time) {
	fmt.Fprintf(os.Stderr, "bench: %-12s %5.1f s\n", phase, time.Since(start).Seconds())
	r.Took += time.Since(start)
}

// addRounds adds metrics: the median of each one's rounds.
func (r *result) addRounds(rounds map[string][]float64, metrics []string) error {
	for _, metric := range metrics {
		if len(rounds[metric]) == 0 {
			return errors.New("its result has no " + metric)
		}
		r.Metrics[metric] = summary(stats.Summarize(rounds[metric]))
	}
	return nil
}
