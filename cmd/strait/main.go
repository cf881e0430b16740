//go:build !books

// Command strait is the user's tool. It asks the straitd on this node over a unix socket and prints
// the answers as tables, JSON or YAML. If there is no daemon, or its answers are in doubt, it reads
// and changes the daemon's pins directly. With a kubeconfig it installs strait in Kubernetes clusters
// and joins them. The commands are those of the packages below cli.
//
// Inputs are flags, the daemon's answers (package daemon/api), pins and API servers; outputs are
// text and an exit code. It must not know how answers are computed: no gossip, no backend choice.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/term"

	"strait.io/strait/cli"
	"strait.io/strait/cli/fleet"
	"strait.io/strait/cli/kernel"
	"strait.io/strait/cli/node"
)

// version and revision are set by the linker (-X main.version=…); if empty, the Go toolchain's
// stamps are used.
var version, revision string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, env{
		App: cli.App{
			Args:       os.Args[1:],
			Stdin:      os.Stdin,
			Stdout:     os.Stdout,
			Stderr:     os.Stderr,
			Getenv:     os.Getenv,
			Now:        time.Now,
			IsTerminal: term.IsTerminal(int(os.Stdout.Fd())),
			Version:    version,
			Revision:   revision,
			Reach:      fleet.Reach,

			ContextNames: fleet.ContextNames,
			Preflight:    node.Preflight,
			Program:      filepath.Base(os.Args[0]),
		},
		kernel:  kernel.Real(),
		proxied: node.Proxied,
	})
	stop()
	os.Exit(code)
}
