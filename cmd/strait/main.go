// Command strait is the user's tool. It asks the straitd on this node over a unix socket and prints
// the answers as tables, JSON or YAML. If there is no daemon, or its answers are in doubt, it reads
// and changes the daemon's pins directly (packages below datapath/socklb). With a kubeconfig it
// installs strait in Kubernetes clusters and joins them (package install/cluster).
//
// Inputs are flags, the daemon's answers (package daemon/api), pins and API servers; outputs are
// text and an exit code. It must not know how answers are computed: no gossip, no backend choice.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, env{
		args:       os.Args[1:],
		stdin:      os.Stdin,
		stdout:     os.Stdout,
		stderr:     os.Stderr,
		getenv:     os.Getenv,
		now:        time.Now,
		isTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		kernel:     realKernel(),
	})
	stop()
	os.Exit(code)
}
