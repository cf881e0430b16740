package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"strait.io/strait/test/bench/stats"
)

// demoMetrics are the metrics of the phase demo, and what `strait demo measure` calls them.
var demoMetrics = []string{"failover_ms", "drain_ms"}

// measureDemo builds strait, and measures the clusterset of `strait demo`: real daemons in three
// clusters of two nodes.
func measureDemo(ctx context.Context, o options, dir string, r *result) error {
	bin, file := filepath.Join(dir, "bin"), filepath.Join(dir, "demo.json")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", bin+"/", "strait.io/strait/cmd/strait", "strait.io/strait/cmd/straitd")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build strait: %w:\n%s", err, out)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "strait"), "demo", "measure", file,
		"--rounds", strconv.Itoa(o.sizes().clustersets), "--dir", filepath.Join(dir, "demo"))
	return r.run(phaseDemo, cmd, file, demoMetrics)
}

// run runs a program that measures a phase and writes its metrics to a file.
func (r *result) run(phase string, cmd *exec.Cmd, file string, metrics []string) error {
	start := time.Now()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it cleans up
	cmd.WaitDelay = time.Minute
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w:\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	fmt.Fprintf(os.Stderr, "bench: %-12s %5.1f s\n", phase, time.Since(start).Seconds())
	r.Took += time.Since(start)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return r.addRounds(text, metrics)
}

// addRounds adds metrics that another program has written: the numbers of each one's rounds.
func (r *result) addRounds(text []byte, metrics []string) error {
	var rounds map[string][]float64
	if err := json.Unmarshal(text, &rounds); err != nil {
		return fmt.Errorf("read its result: %w", err)
	}
	for _, metric := range metrics {
		if len(rounds[metric]) == 0 {
			return errors.New("its result has no " + metric)
		}
		r.Metrics[metric] = summary(stats.Summarize(rounds[metric]))
	}
	return nil
}
