// Command strait is the user's tool: it asks the straitd of this node over its unix socket and prints the
// answers as tables, JSON or YAML.
//
// Inputs are flags and the daemon's answers (package daemon/api); outputs are text and an exit code. It must
// not know how answers come about: no kernel, no gossip, no Kubernetes.
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
	})
	stop()
	os.Exit(code)
}
