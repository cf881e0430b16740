// Command strait is the user's tool: it asks the straitd of this node over its unix socket and prints the
// answers as tables, JSON or YAML. For when there is no daemon, or it is not to be believed, it reads and
// changes what the daemon pinned (package datapath/socklb). And it installs strait in Kubernetes clusters and joins
// them, with a kubeconfig, from anywhere (package install/cluster).
//
// Inputs are flags, the daemon's answers (package daemon/api), pins and API servers; outputs are text and an exit
// code. It must not know how answers come about: no gossip, no choice of backends.
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
