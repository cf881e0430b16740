package monitoring

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"strait.io/strait/daemon/api/client"
	"strait.io/strait/demo/lab"
	"strait.io/strait/internal/testutil"
)

// straitd is the daemon's program.
func (w world) straitd() string { return filepath.Join(filepath.Dir(w.program), "straitd") }

// restart ends the daemon of a node as systemd does, starts a program in its place, and waits until it is ready.
func (w world) restart(l *lab.Lab, node, straitd string) {
	w.Helper()
	config := filepath.Join(l.NodeDir(node), "straitd.yaml")
	pid := w.daemon(l, node, config)
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		w.Fatal(err)
	}
	testutil.Eventually(w, wait, func() error {
		if syscall.Kill(pid, 0) == nil && !zombie(pid) {
			return fmt.Errorf("the daemon of %s still runs", node)
		}
		return nil
	})
	if _, err := l.Start(lab.Command{
		Place: lab.Place{Node: node}, Cgroup: "straitd", Argv: []string{straitd, "--config", config},
		Log: filepath.Join(l.NodeDir(node), "straitd.log"),
	}); err != nil {
		w.Fatal(err)
	}
	testutil.Eventually(w, wait, func() error {
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		s, err := client.OnSocket(socket(l, node)).Status(ctx)
		if err == nil && !s.Ready {
			err = fmt.Errorf("%s is not ready", node)
		}
		return err
	})
}

func socket(l *lab.Lab, node string) string {
	return filepath.Join(l.NodeDir(node), "run", "strait.sock")
}

// daemon finds the process of a node's daemon.
func (w world) daemon(l *lab.Lab, node, config string) int {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(l.Cgroup(node), "straitd", "cgroup.procs"))
	if err != nil {
		w.Fatal(err)
	}
	for _, word := range strings.Fields(string(text)) {
		line, err := os.ReadFile(filepath.Join("/proc", word, "cmdline"))
		args := strings.Split(string(line), "\x00")
		if pid, wrong := strconv.Atoi(word); err == nil && wrong == nil && slices.Contains(args, config) && !slices.Contains(args, "tunnel") {
			return pid
		}
	}
	w.Fatalf("no daemon of %s runs: %s", node, text)
	return 0
}

// zombie reports whether a process has ended, and its parent does not know yet.
func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(text), ") ")
	return err == nil && strings.HasPrefix(state, "Z")
}
